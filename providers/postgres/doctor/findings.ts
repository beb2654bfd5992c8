import type { Finding, Remedy } from '#contract';
import { codeOf } from '../errors.ts';

type Area = Finding['area'];

export const ok = (area: Area, message: string): Finding => ({ area, level: 'ok', message });

export const warning = (area: Area, message: string, ...remedies: readonly Remedy[]): Finding =>
  found({ area, level: 'warning', message }, remedies);

export const problem = (area: Area, message: string, ...remedies: readonly Remedy[]): Finding =>
  found({ area, level: 'problem', message }, remedies);

const found = (finding: Finding, remedies: readonly Remedy[]): Finding =>
  remedies.length === 0 ? finding : { ...finding, remedies };

/** What a check could not look at: of the server's errors no more than the SQLSTATE, since they may quote what is stored. */
export const notLookedAt = (area: Area, what: string, error: unknown): Finding =>
  problem(
    area,
    `${what} could not be looked at (${codeOf(error) ?? (error instanceof Error ? error.message : error)})`,
  );
