import { createHmac } from 'node:crypto';
import { PREFIX } from './secrets.ts';

export interface Message {
  /** Identifies the event; the same in every attempt. */
  readonly id: string;
  readonly body: string;
}

/** The headers of an attempt (Standard Webhooks 1.0): one signature by each secret, so that a receiver may know either. */
export function signedHeaders({ id, body }: Message, secrets: readonly string[], now: number): Record<string, string> {
  const timestamp = String(Math.floor(now / 1_000));
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}
