import type { RunningGateway } from './gateway.ts';

const MINUTE = 60_000;

/** How often the gateways found the shared store failing, and how often they found it back. */
function outages(gateways: readonly RunningGateway[]) {
  const lines = (pattern: RegExp) => gateways.flatMap(({ printed }) => [...printed().matchAll(pattern)]).length;
  return { begun: lines(/the rate limit store fails/g), ended: lines(/the rate limit store answers again/g) };
}

/**
 * What happens within one window of the gateways' clock, which is this machine's: begun in the first half of a minute,
 * and once more, with another client, should that minute have ended meanwhile. On a machine so busy that the store is
 * found too slow, each gateway limits on its own and says so: that is no answer to the question, and asked again too.
 */
export async function withinOneWindow<Result>(
  gateways: readonly RunningGateway[],
  work: (address: string) => Promise<Result>,
): Promise<Result> {
  for (let client = 1; ; client++) {
    const elapsed = Date.now() % MINUTE;
    if (elapsed > MINUTE / 2) await new Promise((resolve) => setTimeout(resolve, MINUTE - elapsed + 10));
    const window = Math.floor(Date.now() / MINUTE);
    const before = outages(gateways);
    const result = await work(`192.0.2.${client}`);
    const shared = before.begun === before.ended && outages(gateways).begun === before.begun;
    if (shared && Math.floor(Date.now() / MINUTE) === window) return result;
  }
}
