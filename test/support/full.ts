/** Whether `npm run test:full` runs: more rounds, more stores. */
export const FULL = process.env.TEST_FULL !== undefined;
