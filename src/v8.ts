import { setFlagsFromString } from 'node:v8';

// See docs/performance-notes.md. Node prints an error for a flag that it does not know; 20, 22 and 24 know this one.
setFlagsFromString('--no-allocation-site-pretenuring');
