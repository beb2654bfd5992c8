import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

export interface Service {
  readonly image: string;
  readonly build?: string;
  readonly environment?: Readonly<Record<string, string | null>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly platform?: string;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>> | readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly profiles?: readonly string[];
  readonly restart: string;
  readonly read_only?: boolean;
  readonly tmpfs?: readonly string[];
  readonly mem_limit?: string;
  readonly stop_grace_period?: string;
}

export const FILE = 'docker-compose.yml';
export const TEXT = readFileSync(FILE, 'utf8');
/** What a plain `docker compose up` starts. */
export const DEFAULT = ['gateway', 'postgres'] as const;
export const PROFILES = {
  embedded: ['embedded'],
  'pinecone-local': ['pinecone-gateway', 'pinecone'],
  redis: ['redis'],
  monitoring: ['prometheus', 'grafana'],
} as const;
export type Name = (typeof PROFILES)[keyof typeof PROFILES][number] | (typeof DEFAULT)[number];

export const { services, volumes } = parse(TEXT, { merge: true }) as {
  services: Readonly<Record<Name, Service>>;
  volumes: Readonly<Record<string, null>>;
};
