import type { Embedder, Log } from '#contract';

/** Texts before the first warning. */
const FEWEST = 8;
/** After so many texts the counts are halved, so that recent ones weigh more. */
const WINDOW = 128;
/** Letters of a text that are looked at, in characters: the beginning shows the script. */
const LOOKED_AT = 200;

/** What the log and `doctor` say. */
export const FOREIGN_SCRIPT =
  'most texts are not in the Latin script, which is all that the bundled model reads: a search finds them badly; set OMP_EMBEDDER=openai with a multilingual model (docs/concepts.md#embedders), then run "omp-gateway reembed"';

/** Whether most letters are of another script. */
function isForeign(text: string): boolean {
  const letters = text.slice(0, LOOKED_AT).match(/\p{L}/gu) ?? [];
  const latin = letters.filter((letter) => /\p{Script=Latin}/u.test(letter));
  return 2 * latin.length < letters.length;
}

/** Logs one warning once most of the recent texts are not in the Latin script. It cannot tell languages of the Latin script apart. */
export function withScriptWarning<Inner extends Embedder>(inner: Inner, log: Log): Inner {
  let [seen, foreign, warned] = [0, 0, false];
  const look = (texts: readonly string[]) => {
    for (const text of texts) {
      seen++;
      if (isForeign(text)) foreign++;
    }
    if (seen >= FEWEST && 2 * foreign > seen) {
      warned = true;
      log.warn({}, FOREIGN_SCRIPT);
    } else if (seen >= WINDOW) [seen, foreign] = [seen / 2, foreign / 2];
  };
  return {
    ...inner,
    async embed(texts, purpose, call) {
      const vectors = await inner.embed(texts, purpose, call);
      if (!warned) look(texts);
      return vectors;
    },
  };
}
