/**
 * The address of an index: `https://` where no scheme is given, without a slash at the end. Throws an `Error` for
 * operators where it cannot be one.
 */
export function indexAddress(index_host: string): string {
  const given = index_host.trim();
  const address = /^[a-z][a-z\d+.-]*:\/\//i.test(given) ? given : `https://${given}`;
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.search || url.hash) {
    throw new Error(
      'pinecone: index_host is not the address of an index, which the console of Pinecone shows as "Host"',
    );
  }
  return `${url.origin}${url.pathname.replace(/(?<!\/)\/+$/, '')}`;
}

/** The key without the white space that comes with copying. Others could not be sent, and errors would quote them. */
export function apiKeyOf(api_key: string): string {
  const key = api_key.trim();
  if (!/^[\x21-\x7e]+$/.test(key)) throw new Error('pinecone: api_key has characters that no API key has');
  return key;
}

/** The SDK prints contents or the API key when it finds one of these, and cannot be told not to. */
const DEBUG_VARIABLES = ['PINECONE_DEBUG', 'PINECONE_DEBUG_CURL'];

export function refuseDebugOutput(): void {
  // biome-ignore lint/style/noProcessEnv: no setting of the gateway; it is the SDK that reads them.
  const set = DEBUG_VARIABLES.filter((name) => process.env[name]);
  if (set.length > 0) throw new Error(`pinecone: unset ${set.join(' and ')}: memories and API keys would be printed`);
}
