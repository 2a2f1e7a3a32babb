import 'reflect-metadata'
import { X509CertificateGenerator, cryptoProvider } from '@peculiar/x509'
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  webcrypto,
} from 'node:crypto'

const DAY_MS = 86_400_000
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

/**
 * Maximum and default validity of a TLS certificate, in days. Peers pin the certificate's key, so a
 * shorter validity would not add protection: the holder of the key can create another certificate.
 */
export const CERTIFICATE_DAYS = 20 * 365

/** Returns a new P-256 private key, PKCS #8 in PEM. */
export const makeTlsKey = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    type: 'pkcs8',
    format: 'pem',
  }) as string

/**
 * Creates a self-signed TLS certificate of an existing key. It is valid from a day before `nowMs`,
 * so that clocks may differ.
 * @param key private key, PKCS #8 in PEM
 * @param name common name of the subject
 * @returns the certificate in PEM
 */
export async function makeCertificate({
  key,
  name,
  nowMs = Date.now(),
  days = CERTIFICATE_DAYS,
}: {
  key: string
  name: string
  nowMs?: number
  days?: number
}): Promise<string> {
  cryptoProvider.set(webcrypto as never)
  const { subtle } = webcrypto
  const pkcs8 = createPrivateKey(key).export({ type: 'pkcs8', format: 'der' })
  const spki = createPublicKey(key).export({ type: 'spki', format: 'der' })
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: randomBytes(16).toString('hex').replace(/^./, '4'),
    name: `CN=${name}`,
    notBefore: new Date(nowMs - DAY_MS),
    notAfter: new Date(nowMs + days * DAY_MS),
    signingAlgorithm: ALGORITHM,
    keys: {
      privateKey: await subtle.importKey('pkcs8', pkcs8, ALGORITHM, false, ['sign']),
      publicKey: await subtle.importKey('spki', spki, ALGORITHM, true, ['verify']),
    } as never,
  })
  return `${certificate.toString('pem')}\n`
}
