import { createInterface } from 'node:readline';

// What the recorder gives: the first line. After the first answer come commands (together.ts), a line each, and each is answered with a line.
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const given = JSON.parse((await lines.next()).value);

/** Adds every memory with the first of its metadata that the library takes: ids by key, and what it said to the others. */
export async function attempt(add) {
  const [ids, refused] = [{}, []];
  for (const { key, text, attempts } of given.memories) {
    for (const metadata of attempts) {
      try {
        ids[key] = await add(text, metadata);
        break;
      } catch (error) {
        refused.push(`${key}: ${error.message.slice(0, 200)}`);
      }
    }
  }
  return { ids, refused };
}

export const keyOf = (text) => given.memories.find((each) => each.text === text).key;

export async function answer(recorded, commands) {
  const searches = [];
  for (const search of given.searches) {
    const hits = await commands.search(search.text, search.user_id);
    searches.push({ ...search, found: hits.map(([text]) => keyOf(text)), scores: hits.map(([, score]) => score) });
  }
  console.log(JSON.stringify({ ...recorded, searches }));
  for await (const line of lines) {
    const [name, values] = JSON.parse(line);
    const said = await commands[name](...values).then(
      (result) => ({ answer: result ?? null }),
      ({ message }) => ({ error: message.slice(0, 300) }),
    );
    console.log(JSON.stringify(said));
  }
  process.exit();
}
