/** The messages of an error and of what caused it, without stacks: for an operator, not for a debugger. */
export function explainError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}\n  because: ${explainError(error.cause)}`;
}
