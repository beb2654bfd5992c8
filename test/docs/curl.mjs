// Stands for curl in the examples of the documents, so that the tests need nothing but Node: -s, -X, -H, -d and one address.
// Sends the request to OMP_EXAMPLE_URL, prints the answer, and fails for an error answer if OMP_EXAMPLE_STRICT is set.
const args = process.argv.slice(2);
const headers = new Headers();
let [method, body, url] = [undefined, undefined, undefined];
while (args.length > 0) {
  const arg = args.shift();
  if (arg === '-s') continue;
  else if (arg === '-X') method = args.shift();
  else if (arg === '-d') body = args.shift();
  else if (arg === '-H') headers.append(...args.shift().split(/:\s*/, 2));
  else if (url === undefined && arg.startsWith('http://127.0.0.1:8080/')) url = arg;
  else throw new Error(`curl.mjs does not know ${arg}`);
}
const response = await fetch(url.replace('http://127.0.0.1:8080', process.env.OMP_EXAMPLE_URL), {
  method: method ?? (body === undefined ? 'GET' : 'POST'),
  headers,
  body,
});
process.stdout.write(await response.text());
if (!response.ok && process.env.OMP_EXAMPLE_STRICT) process.exitCode = 22;
