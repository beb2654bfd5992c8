/** A terminal obeys control characters, and names of others may hold them. */
export const printable = (text: string): string => text.replace(/\p{Cc}/gu, '?');
