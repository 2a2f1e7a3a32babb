import { createHash, X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'

/**
 * Authentication of TLS connections by pinned keys. The handshake proves that the other end holds
 * the private key of the certificate that it presents. The key is pinned instead of the
 * certificate, so that a renewed certificate of the same key needs no change at the other end. A
 * certificate outside its validity is rejected, whatever its key.
 */

/**
 * Returns the pin of a certificate: SHA-256 of its public key (SubjectPublicKeyInfo in DER), in
 * hex.
 * @throws Error if it cannot be parsed
 */
export function pinOf(certificate: string | X509Certificate): string {
  const { publicKey } =
    typeof certificate === 'string' ? new X509Certificate(certificate) : certificate
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')
}

/** Reason why a connection was rejected. The message is complete and contains no secret. */
export class CertificateError extends Error {
  readonly code: 'MISSING' | 'OTHER_KEY' | 'EXPIRED' | 'NOT_YET_VALID'
  constructor(code: CertificateError['code'], message: string) {
    super(message)
    this.name = 'CertificateError'
    this.code = code
  }
}

const dayOf = (date: Date): string => date.toISOString().slice(0, 10)

/**
 * Checks a certificate against pinned keys and the clock.
 * @param certificate absent: the other end presented none
 * @param pins pins of the permitted keys
 * @returns the certificate's pin
 * @throws CertificateError
 */
export function checkCertificate(
  certificate: X509Certificate | undefined,
  pins: readonly string[],
  nowMs: number,
): string {
  if (!certificate) throw new CertificateError('MISSING', 'no TLS certificate was presented')
  const pin = pinOf(certificate)
  if (!pins.includes(pin))
    throw new CertificateError(
      'OTHER_KEY',
      'the TLS certificate has another key than the pinned one',
    )
  const { validFromDate, validToDate } = certificate
  // Invalid dates are rejected too, because every comparison with them is false.
  if (!(nowMs <= validToDate.getTime()))
    throw new CertificateError('EXPIRED', `the TLS certificate expired on ${dayOf(validToDate)}`)
  if (!(nowMs >= validFromDate.getTime())) {
    throw new CertificateError(
      'NOT_YET_VALID',
      `the TLS certificate is valid from ${dayOf(validFromDate)} only; check both clocks`,
    )
  }
  return pin
}

/**
 * Ends a client's connection before any data of a request is sent, unless the server presents a
 * valid certificate of the pinned key. Must be called before the handshake ends, on a connection
 * that was opened with `rejectUnauthorized: false`.
 * @param onPresented called with a certificate of the pinned key, whether or not it is valid
 */
export function requirePinned(
  socket: TLSSocket,
  {
    pin,
    now,
    onPresented = () => {},
  }: { pin: string; now: () => number; onPresented?: (certificate: X509Certificate) => void },
): void {
  socket.once('secureConnect', () => {
    try {
      const certificate = socket.getPeerX509Certificate()
      if (certificate && pinOf(certificate) === pin) onPresented(certificate)
      checkCertificate(certificate, [pin], now())
    } catch (error) {
      socket.destroy(error as Error)
    }
  })
}
