import { type Client, createClient, type InStatement, type Row } from '@libsql/client';
import { answerQuestions } from '#provider';

/** What to do with a file: all statements in one transaction, which writes or only reads. */
export interface Work {
  readonly url: string;
  /** Of the connection. */
  readonly pragma: string;
  readonly mode: 'read' | 'write';
  readonly statements: readonly InStatement[];
}

/** Of the last statement. */
export type Done =
  | { readonly rows: readonly Row[]; readonly rowsAffected: number }
  // An error would lose its code on the way.
  | { readonly error: { readonly message: string; readonly code: string | undefined } };

let client: Client | undefined;

/** Each thread is of one file. */
answerQuestions(async ({ url, pragma, mode, statements }: Work): Promise<Done> => {
  try {
    if (!client) {
      client = createClient({ url, concurrency: 1 });
      await client.execute(pragma);
    }
    const { rows = [], rowsAffected = 0 } = (await client.batch([...statements], mode)).at(-1) ?? {};
    return { rows, rowsAffected };
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    return { error: { message, code } };
  }
});
