/*
 * What features open for their verbs: how webhooks are delivered, which memories are deleted after a time.
 */

/** Names the service of a feature. The type is that of the service. */
export interface ServiceKey<Service> {
  readonly name: string;
  /** Never set. */
  readonly type?: Service;
}

/** The services of the features that are on. */
export type Services = ReadonlyMap<ServiceKey<unknown>, unknown>;

export const NO_SERVICES: Services = new Map();

/** Undefined: the feature is off, or the store does not have what it needs. */
export const serviceIn = <Service>(services: Services, key: ServiceKey<Service>): Service | undefined =>
  services.get(key) as Service | undefined;
