import type { Change, ChangeFilter } from '#contract';
import { withinMatcher } from './scopes.ts';

/** A function that tells whether a change matches. */
export function changeMatcher({ users, within, scope }: ChangeFilter): (change: ChangedScopes) => boolean {
  const admits = withinMatcher(within);
  const matches = withinMatcher(scope === undefined ? null : [scope]);
  const fits = (scope: string | null) => admits(scope) && matches(scope);
  return ({ user_id, scope, left_scopes }) =>
    (users === null || users.includes(user_id)) && (fits(scope) || left_scopes.some(fits));
}

/** The scope that a reader of these scopes gets to know: of a memory that was moved out of them, the one that it had. */
export const shownScope = (
  { id, scope, left_scopes }: Pick<Change, 'id' | 'scope' | 'left_scopes'>,
  admits: (scope: string | null) => boolean,
): string | null => (id === null || admits(scope) ? scope : (left_scopes.find(admits) ?? null));

type ChangedScopes = Pick<Change, 'user_id' | 'scope' | 'left_scopes'>;
