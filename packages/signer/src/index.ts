export { verifyCertificates, certificateBytes, CERTIFICATE_KEYS, type KeyCertificate } from './keys/certificate.ts'
export { TAGS } from './canonical.ts'
export { CODES, type Code } from './errors.ts'
export { setup } from './setup.ts'
