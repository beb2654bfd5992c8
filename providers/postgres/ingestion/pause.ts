const FIRST_SECONDS = 1;
const LONGEST_SECONDS = 60;

/** Seconds to wait after so many failures in a row, 1 to 60, by chance up to half less: replicas do not come all at once. */
export const pauseAfter = (failures: number): number =>
  Math.min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** (failures - 1)) * (1 - Math.random() / 2);
