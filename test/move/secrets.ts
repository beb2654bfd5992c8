const letters = (length: number, of = 'Ab3dEf6hJk9mNp2qRs5tUv8x') => of.repeat(10).slice(0, length);
const hex = (length: number) => letters(length, '0a1b2c3d4e5f6789');

/** Made-up secrets, by what they are. Not written out, so that no scanner takes this file for a leak. */
export const SECRETS: readonly (readonly [name: string, secret: string])[] = [
  ['OpenAI', `sk-proj-${letters(48)}`],
  ['Anthropic', `sk-ant-api03-${letters(90)}`],
  ['OpenRouter', `sk-or-v1-${hex(64)}`],
  ['Groq', `gsk_${letters(52)}`],
  ['xAI', `xai-${letters(80)}`],
  ['Pinecone', `pcsk_${letters(70)}`],
  ['this gateway', `omp_abcdef012345_${letters(43)}`],
  ['Stripe', `sk_live_${letters(24)}`],
  ['a webhook', `whsec_${letters(32)}`],
  ['GitHub', `ghp_${letters(36)}`],
  ['GitHub, fine-grained', `github_pat_${letters(22)}_${letters(59)}`],
  ['GitLab', `glpat-${letters(20)}`],
  ['npm', `npm_${letters(36)}`],
  ['PyPI', `pypi-${letters(80)}`],
  ['Hugging Face', `hf_${letters(34)}`],
  ['Slack', `xoxb-${letters(12, '0123456789')}-${letters(24)}`],
  ['a webhook of Slack', `hooks.slack.com/services/${'T0000AAAA/B0000BBBB/'}${letters(24)}`],
  ['a webhook of Discord', `discord.com/api/webhooks/${letters(18, '0123456789')}/${letters(60)}`],
  ['AWS', `AKIA${letters(16, 'ABCDEFGH234567')}`],
  ['AWS, by its name', `aws_secret_access_key = ${letters(40, 'wJalrXUtnFEMI/K7')}`],
  ['Google', `AIza${letters(35)}`],
  ['Google OAuth', `ya29.${letters(60)}`],
  ['Azure', `AccountKey=${letters(86)}==`],
  ['DigitalOcean', `dop_v1_${hex(64)}`],
  ['Databricks', `dapi${hex(32)}`],
  ['Vault', `hvs.${letters(90)}`],
  ['Terraform', `${letters(14)}.atlasv1.${letters(60)}`],
  ['SendGrid', `SG.${letters(22)}.${letters(43)}`],
  ['Mailgun', `key-${hex(32)}`],
  ['Twilio', `SK${hex(32)}`],
  ['Shopify', `shpat_${hex(32)}`],
  ['Notion', `ntn_${letters(46)}`],
  ['Linear', `lin_api_${letters(40)}`],
  ['Figma', `figd_${letters(40)}`],
  ['Atlassian', `ATATT3${letters(180)}`],
  ['Grafana', `glsa_${letters(32)}_${hex(8)}`],
  ['Telegram', `${letters(10, '1234567890')}:AA${letters(33)}`],
  ['a JSON Web Token', `eyJ${letters(33)}.eyJ${letters(60)}.${letters(43)}`],
  ['a header', `Authorization: Bearer ${letters(24)}`],
  ['a URL', `postgres://ana:${letters(12)}@db.example.org/shop`],
  ['a password', `password: ${letters(12)}`],
  ['a variable', `MY_API_KEY=${letters(20)}`],
  ['a field of JSON', `{"client_secret": "${letters(20)}"}`],
  ['an option', `--token ${letters(20)}`],
  ['a private key', `-----BEGIN OPENSSH PRIVATE KEY-----\n${letters(70)}\n-----END OPENSSH PRIVATE KEY-----`],
];

/** What of a secret must not be seen: its longest run of characters with a digit. */
export const coreOf = (secret: string): string =>
  (secret.match(/\w{12,}/g) ?? [])
    .filter((run) => /\d/.test(run))
    .reduce((longest, run) => (run.length > longest.length ? run : longest));
