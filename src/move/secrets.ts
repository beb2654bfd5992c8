/** What stands in place of a secret. */
const MASK = '[masked]';

/**
 * Keys of well-known services, by what they begin with. After it nothing but the characters of a key is read. Each expression takes
 * linear time: none begins again within a run of characters that it may read to the end in vain.
 */
const KEYS: readonly RegExp[] = [
  // OpenAI, Anthropic, OpenRouter, DeepSeek; Groq, xAI, Perplexity, Replicate, Tavily, NVIDIA, Pinecone, and this gateway.
  /\bsk-[\w-]{16,}/g,
  /\b(?:gsk_|r8_|pcsk_)\w{24,}/g,
  /\b(?:xai|pplx|tvly|nvapi)-[\w-]{24,}/g,
  /\bomp_[a-z0-9]{12}_[\w-]{43}/g,
  // Stripe, and webhooks as of Standard Webhooks.
  /\b[spr]k_(?:live|test)_\w{16,}/g,
  /\bwhs(?:ec|k)_[\w+/=-]{16,}/g,
  // GitHub, GitLab, Docker, npm, PyPI, Hugging Face, Supabase.
  /\b(?:gh[opsur]|npm|hf)_[A-Za-z0-9]{30,}/g,
  /\b(?:github_pat|dckr_pat|sbp|sb_secret)_[\w-]{16,}/g,
  /\bgl(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|soat)-[\w-]{16,}/g,
  /\bpypi-[\w-]{32,}/g,
  // Slack; webhooks of Slack and Discord.
  /\bx(?:ox[a-z]|app|wfp)-[\w-]{10,}/g,
  /\bhooks\.slack\.com\/(?:services|workflows|triggers)\/[\w/]{16,}/g,
  /\bdiscord(?:app)?\.com\/api\/webhooks\/[\w/-]{16,}/g,
  // AWS, Google, DigitalOcean, Databricks, Vault, Terraform, Pulumi, Doppler.
  /\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b/g,
  /\bAIza[\w-]{30,}/g,
  /\b(?:GOCSPX-|ya29\.)[\w-]{16,}/g,
  /\bdo[opr]_v1_[0-9a-f]{32,}/g,
  /\bdapi[0-9a-f]{32}/g,
  /\b(?:hv[bsr]|\w{14}\.atlasv1|dp\.[a-z]{2,5})\.[\w-]{24,}/g,
  /\bpul-[0-9a-f]{32,}/g,
  // SendGrid, Mailgun, Twilio, Shopify, Notion, Linear, Figma, Atlassian, Postman, Grafana, Sentry, New Relic, PostHog, Telegram, age.
  /\bSG\.[\w-]{16,}\.[\w-]{16,}/g,
  /\bkey-[0-9a-z]{32}\b/g,
  /\bSK[0-9a-f]{32}\b/g,
  /\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}/g,
  /\b(?:secret_|ntn_|lin_api_|ph[cx]_)[A-Za-z0-9]{32,}/g,
  /\b(?:figd|glsa|glc|sntry[su])_[\w+/=-]{24,}/g,
  /\b(?:ATATT3|PMAK-|NRAK-|AGE-SECRET-KEY-1)[\w=-]{24,}/g,
  /\b\d{8,10}:AA[\w-]{32,}/g,
  // JSON Web Tokens.
  /(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}/g,
];

/** `Authorization: …` with or without a scheme, and `Bearer …`. */
const HEADER = /\b(Authorization["'`]?\s{0,3}[:=]\s{0,3}["'`]?(?:\w{1,20}\s{1,3})?|Bearer\s{1,3})[\w+/=.~-]{16,}/gi;
/** Words may follow these too. */
const SCHEME = /\b((?:Basic|Token)\s{1,3})[\w+/=.~-]{16,}/gi;

/** The password of a URL. With a slash it is none if it could be a port and a path. */
const IN_URL = /(:\/\/[^\s:/@[]{0,100}:)(?:[^\s/]{1,200}|(?!\d{1,5}\/)[^\s/@][^\s@]{0,199})@/g;

/** What follows a name, such as `API_KEY=…`, `"password": "…"`, `--token …`. */
const NAMED =
  /((?:password|passwd|passphrase|pwd|secret|token|(?:api|access|account|private)[-_ ]?key|credentials?)["'`]?(?:\s{0,3}(?:=>|:=|[:=])\s{0,3}|\s)["'`]?)[^\s"'`,;<>(){}[\]]{8,}/gi;

const BEGIN = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/;
const END = '-----END';

/**
 * The text with `[masked]` in place of what looks like a key, a password or a token: by the beginnings that well-known services use,
 * by the name before it, or by its shape. What has no digit and no such beginning counts as a word. Takes linear time.
 */
export function maskSecrets(text: string): { readonly text: string; readonly count: number } {
  let count = 0;
  const mask = (before = '', after = '') => {
    count++;
    return before + MASK + after;
  };
  const withDigit = (all: string, before: string) => (/\d/.test(all.slice(before.length)) ? mask(before) : all);
  let masked = withoutPrivateKeys(text, mask);
  for (const key of KEYS) masked = masked.replace(key, () => mask());
  masked = masked
    .replace(HEADER, (_, before: string) => mask(before))
    .replace(SCHEME, withDigit)
    .replace(IN_URL, (_, before: string) => mask(before, '@'))
    .replace(NAMED, withDigit);
  return { text: masked, count };
}

/** A key without its end was cut: then the rest of the text is masked too. */
function withoutPrivateKeys(text: string, mask: () => string): string {
  let masked = '';
  let rest = text;
  for (;;) {
    const begin = BEGIN.exec(rest);
    if (!begin) return masked + rest;
    masked += rest.slice(0, begin.index) + mask();
    const end = rest.indexOf(END, begin.index + begin[0].length);
    const line = end < 0 ? -1 : rest.indexOf('\n', end);
    rest = line < 0 ? '' : rest.slice(line);
  }
}
