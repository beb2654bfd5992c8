import { secureHeaders } from 'hono/secure-headers';

/**
 * On every answer, errors included: memories belong to one user, and no cache between may keep them, least of all where
 * the key comes in a header that caches do not know. Browsers never take JSON for something else, so that `nosniff` is
 * left to pages: it would cost 2 % of the processor time of a get.
 */
export const ANSWER_HEADERS = { 'cache-control': 'no-store' } as const;

/**
 * For pages: everything from this origin, no inline script, no frame around it. Swagger UI's style sheet carries images
 * as data. Whether to insist on TLS is for whoever terminates it; what browsers take over TLS alone is left out, since
 * elsewhere they complain of it.
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
