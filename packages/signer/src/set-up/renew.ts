import { writeDurably } from '@custody/key-encryption'
import { createPublicKey, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { pinOf } from '@custody/request-auth/pinned'
import { CERTIFICATE_DAYS, makeCertificate } from './certificate.ts'
import { SetupError } from './files.ts'
import { ownPublicConfig } from './public-config-files.ts'

const DAY_MS = 86_400_000

/**
 * The TLS certificate of a data folder. `expires_in_days` is rounded down, and negative after the
 * expiry.
 */
export interface CertificateStatus {
  name: string
  expires_at: string
  expires_in_days: number
  pin: string
}

/**
 * Reads key and certificate of a node's data folder or of the platform's folder.
 * @throws SetupError that names the file
 */
function readTls(home: string): { key: string; certificate: X509Certificate } {
  const [keyFile, certificateFile] = [join(home, 'tls.key'), join(home, 'tls.crt')]
  for (const file of [keyFile, certificateFile]) {
    if (!existsSync(file))
      throw new SetupError(
        `--home: ${file} does not exist; use a signer node's home or the platform's folder`,
      )
  }
  const key = readFileSync(keyFile, 'utf8')
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(readFileSync(certificateFile))
  } catch {
    throw new SetupError(`${certificateFile} is not a certificate; restore it from a backup`)
  }
  let isPair: boolean
  try {
    isPair = createPublicKey(key).equals(certificate.publicKey)
  } catch {
    throw new SetupError(`${keyFile} is not a private key; restore it from a backup`)
  }
  if (!isPair)
    throw new SetupError(
      `${keyFile} and ${certificateFile} belong to different keys; restore both from one backup`,
    )
  return { key, certificate }
}

const commonNameOf = ({ subject }: X509Certificate): string | undefined =>
  /^CN=(.+)$/m.exec(subject)?.[1]

const statusOf = (certificate: X509Certificate, nowMs: number): CertificateStatus => ({
  name: commonNameOf(certificate) ?? '',
  expires_at: certificate.validToDate.toISOString(),
  expires_in_days: Math.floor((certificate.validToDate.getTime() - nowMs) / DAY_MS),
  pin: pinOf(certificate),
})

/**
 * Returns the status of the TLS certificate.
 * @throws SetupError
 */
export const certificateStatus = (home: string, nowMs = Date.now()): CertificateStatus =>
  statusOf(readTls(home).certificate, nowMs)

/**
 * Replaces the TLS certificate of a node's data folder or of the platform's folder by a new one of
 * the same key. Peers pin the key, so they need no change. The node or platform may be running. The
 * replacement is one atomic rename, so after a crash either the old or the new certificate is
 * complete.
 * @param days validity from now
 * @throws SetupError; nothing was changed then
 */
export async function renewCertificate(
  home: string,
  days = CERTIFICATE_DAYS,
  nowMs = Date.now(),
): Promise<CertificateStatus> {
  if (!Number.isInteger(days) || days < 1 || days > CERTIFICATE_DAYS) {
    throw new SetupError(`--days: must be a whole number from 1 to ${CERTIFICATE_DAYS}`)
  }
  const { key, certificate: previous } = readTls(home)
  const { uid } = statSync(join(home, 'tls.crt'))
  if (process.getuid?.() !== uid) {
    throw new SetupError(
      `--home: ${home} belongs to another user; run this as the user with id ${uid}, which must be able to read the new file`,
    )
  }
  const text = await makeCertificate({
    key,
    name: commonNameOf(previous) ?? 'custody',
    nowMs,
    days,
  })
  const renewed = new X509Certificate(text)
  if (pinOf(renewed) !== pinOf(previous))
    throw new SetupError(
      'the new certificate has another key than the current one; nothing was changed',
    )
  writeDurably(join(home, 'tls.crt'), text)
  // The public configuration that is copied to the others during set-up. An outdated certificate in
  // it does no harm, because its key is the same.
  const half = ownPublicConfig(home)
  if (half)
    writeDurably(
      join(home, 'half.json'),
      `${JSON.stringify({ ...half, certificate: text }, null, 2)}\n`,
    )
  return statusOf(renewed, nowMs)
}
