import { CASES, PROFILES, type Profile } from './cases/index.ts';
import { CLAUSES } from './clauses.ts';
import { type Case, type Exchange, Failure, isRecord, type KitRun, openKit, openRun, type Send, Skip } from './kit.ts';
import type { Capabilities } from './protocol.ts';

export type Status = 'passed' | 'failed' | 'warning' | 'skipped';

export interface Result {
  readonly id: string;
  readonly profile: Profile;
  readonly title: string;
  readonly clauses: readonly { readonly id: string; readonly text: string }[];
  readonly status: Status;
  /** What is wrong, or why it was skipped. */
  readonly message?: string;
  /** The last request of the case and its answer, if it sent one. Texts are cut. */
  readonly request?: Exchange['request'];
  readonly answer?: Exchange['answer'];
}

const MAX_SHOWN = 2_000;
const cut = (text: string): string => (text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text);

/** Runs one case. Never rejects. */
export async function runCase(run: KitRun, profile: Profile, one: Case): Promise<Result> {
  const exchanges: Exchange[] = [];
  const kit = openKit(run, exchanges);
  const { id, title } = one;
  const clauses = one.clauses.map((clause) => ({ id: clause, text: CLAUSES[clause] ?? '' }));
  const result = (status: Status, message?: string): Result => {
    const { request, answer } = exchanges.at(-1) ?? {};
    return {
      id,
      profile,
      title,
      clauses,
      status,
      ...(message !== undefined && { message }),
      ...(request && { request: { ...request, ...(request.body !== undefined && { body: cut(request.body) }) } }),
      ...(answer && { answer: { ...answer, text: cut(answer.text) } }),
    };
  };
  try {
    await kit.needs(...(one.readOnly ? [] : ['add' as const]), ...(one.needs ?? []));
    await one.run(kit);
    return result('passed');
  } catch (error) {
    if (error instanceof Skip) return result('skipped', error.message);
    return result(one.should ? 'warning' : 'failed', error instanceof Failure ? error.message : unexpected(error));
  }
}

/** An answer of the wrong shape, or none. */
function unexpected(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

export interface RunOptions {
  readonly send: Send;
  readonly keys: KitRun['keys'];
  readonly readOnly: boolean;
  /** Empty: all. */
  readonly profiles: readonly Profile[];
  /** Ends the run after the current case; cleaning up comes after it. */
  readonly signal: AbortSignal;
  /** Called after each case. */
  onResult(result: Result): void;
}

export interface Run {
  readonly results: readonly Result[];
  /** Memories that could not be deleted. */
  readonly left: readonly string[];
}

/** Runs the cases one after the other, then deletes what they added. Rejects if nothing answers at all. */
export async function runAll({ send, keys, readOnly, profiles, signal, onResult }: RunOptions): Promise<Run> {
  const run = openRun({ send, keys, capabilities: await readCapabilities(send) });
  const results: Result[] = [];
  try {
    for (const profile of profiles.length > 0 ? profiles : PROFILES) {
      for (const one of CASES[profile]) {
        if (signal.aborted || (readOnly && !one.readOnly)) continue;
        const result = await runCase(run, profile, one);
        results.push(result);
        onResult(result);
      }
    }
  } finally {
    await cleanUp(run);
  }
  return { results, left: [...run.added] };
}

/** What the server declares. Without a document that is nothing, and only cases without needs run. Rejects if nothing answers. */
export async function readCapabilities(send: Send): Promise<Capabilities> {
  const response = await send('/capabilities', {}, 'anonymous');
  const body: unknown = await response.json().catch(() => undefined);
  if (!isRecord(body) || !Array.isArray(body.verbs) || !isRecord(body.features)) {
    return { verbs: [], features: { scopes: 'none' } };
  }
  return { verbs: body.verbs, features: body.features, ...(isRecord(body.limits) && { limits: body.limits }) };
}

/** Deletes what the run added; what remains in `added` could not be deleted. */
async function cleanUp(run: KitRun): Promise<void> {
  const kit = openKit(run, []);
  if (run.capabilities.verbs.includes('list')) {
    // An answer may not have said that it added a memory.
    for (const user_id of run.users) {
      for (const { id } of await kit.pages({ user_id, limit: 500 }).catch(() => [])) run.added.add(id);
    }
  }
  for (const id of run.added) {
    const answer = await kit.tell('DELETE', kit.path(id)).catch(() => undefined);
    if (answer?.status === 204 || answer?.status === 404) run.added.delete(id);
  }
}
