import { connect } from 'node:tls'
import { reasonOf } from '@custody/chains/reason'
import { ok, problem, warning, type Finding } from './findings.ts'

const DAY_MS = 86_400_000
/**
 * Days before the end of the certificate from which it is reported. Automatic renewal happens 30
 * days before the end, so a certificate with less time was not renewed.
 */
const WARN_DAYS = 14
const TIMEOUT_MS = 5000
const HTTPS_PORT = 443

interface Presented {
  expiresAt: Date
  untrusted: string | null
}

/**
 * Returns the certificate that a public host name presents.
 * @param ca additional certificate authorities, in PEM
 */
function presented(url: URL, ca?: string): Promise<Presented> {
  return new Promise((resolve, reject) => {
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const socket = connect(
      {
        host,
        port: url.port === '' ? HTTPS_PORT : Number(url.port),
        rejectUnauthorized: false,
        timeout: TIMEOUT_MS,
        ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
        ...(ca === undefined ? {} : { ca }),
      },
      () => {
        const { valid_to: end } = socket.getPeerCertificate()
        const untrusted = socket.authorized ? null : String(socket.authorizationError)
        socket.destroy()
        if (end === undefined) reject(new Error('it presented no certificate'))
        else resolve({ expiresAt: new Date(end), untrusted })
      },
    )
    socket.on('error', reject)
    socket.on('timeout', () => socket.destroy(new Error(`no response within ${TIMEOUT_MS} ms`)))
  })
}

/**
 * Checks the TLS certificate of the platform's public name, which callers and payers use.
 * @param url CUSTODY_PUBLIC_URL; if it is not HTTPS, there is nothing to check
 */
export async function diagnosePublic(
  url: string | null,
  clock: () => number = Date.now,
  ca?: string,
): Promise<Finding[]> {
  if (url === null || !url.startsWith('https:')) return []
  const { origin } = new URL(url)
  const renew = 'renew it at the proxy that terminates TLS (docs/production/README.md)'
  let match: Presented
  try {
    match = await presented(new URL(url), ca)
  } catch (error) {
    return [
      problem(
        'certificates',
        `${origin} cannot be reached: ${reasonOf(error)}`,
        'check the proxy, DNS and CUSTODY_PUBLIC_URL',
      ),
    ]
  }
  const { expiresAt, untrusted } = match
  const day = expiresAt.toISOString().slice(0, 10)
  const leftMs = expiresAt.getTime() - clock()
  if (leftMs < 0)
    return [problem('certificates', `the certificate of ${origin} expired on ${day}`, renew)]
  if (untrusted !== null) {
    return [
      problem(
        'certificates',
        `the certificate of ${origin} is not trusted by callers: ${untrusted}`,
        'install a certificate of an authority that they trust, with its intermediate certificates',
      ),
    ]
  }
  if (leftMs < WARN_DAYS * DAY_MS)
    return [warning('certificates', `the certificate of ${origin} expires on ${day}`, renew)]
  return [ok('certificates', `the certificate of ${origin} is valid until ${day}`)]
}
