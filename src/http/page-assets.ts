import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { secureHeaders } from 'hono/secure-headers';
import { OmpError } from '#contract';

/** Reads each file once, on its first request. */
export function assetReader(folder: string): (name: string) => Promise<Uint8Array<ArrayBuffer>> {
  const contents = new Map<string, Uint8Array<ArrayBuffer>>();
  return async (name) => {
    const existing = contents.get(name);
    if (existing) return existing;
    try {
      const content = await readFile(join(folder, name));
      contents.set(name, content);
      return content;
    } catch (cause) {
      throw new OmpError('not_found', 'the assets of this page are not installed', { cause });
    }
  };
}

/**
 * Headers of pages: everything from this origin, no inline script, no frames. Swagger UI's style sheet has images as data
 * URLs. HSTS is left to the proxy that terminates TLS, and headers that browsers only accept over TLS are left out.
 */
export const pageHeaders = secureHeaders({
  contentSecurityPolicy: {
    defaultSrc: ["'none'"],
    scriptSrc: ["'self'"],
    styleSrc: ["'self'"],
    imgSrc: ["'self'", 'data:'],
    connectSrc: ["'self'"],
    baseUri: ["'none'"],
    formAction: ["'none'"],
    frameAncestors: ["'none'"],
  },
  xFrameOptions: 'DENY',
  permissionsPolicy: { camera: [], geolocation: [], microphone: [], payment: [], usb: [] },
  strictTransportSecurity: false,
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
});
