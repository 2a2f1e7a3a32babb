import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { commandName } from '@custody/chains/terminal'
import { SignerNodes } from '../signing/nodes.ts'
import { heardStatus } from '../signing/status.ts'

const DAY_MS = 86_400_000
/**
 * Days before the end of a TLS certificate from which the doctor reports it; the same as in
 * deploy/monitoring/custody.rules.yml.
 */
const WARN_DAYS = 30
const RENEW = 'custody tls renew --home'

export interface CertificateDiagnosis {
  /** Owner of the certificate: `platform`, or `signer 1`. */ of: string
  /** `unknown`: the node presented no certificate with its pinned key. */ state:
    | 'ok'
    | 'expires soon'
    | 'expired'
    | 'unknown'
  expires_at: string | null
  advice: string | null
}

function diagnose(
  of: string,
  expiry: Date | undefined,
  nowMs: number,
  advice: string,
): CertificateDiagnosis {
  if (!expiry)
    return {
      of,
      state: 'unknown',
      expires_at: null,
      advice: `${commandName()} signer status reports whether the node runs`,
    }
  const expires_at = expiry.toISOString()
  const leftMs = expiry.getTime() - nowMs
  if (leftMs > WARN_DAYS * DAY_MS) return { of, state: 'ok', expires_at, advice: null }
  return { of, state: leftMs < 0 ? 'expired' : 'expires soon', expires_at, advice }
}

/**
 * Reads when the TLS certificates of the platform and of the signer nodes expire. Connects to each
 * node.
 * @param folder the platform's folder with tls.key, tls.crt and peers.json
 * @returns an empty list if the folder is not set up
 */
export async function diagnoseCertificates(
  folder: string,
  clock: () => number = Date.now,
): Promise<CertificateDiagnosis[]> {
  if (!existsSync(join(folder, 'peers.json'))) return []
  const signers = new SignerNodes(folder, clock)
  try {
    await heardStatus(signers)
    const { platform, nodes } = signers.certificateExpiries()
    return [
      diagnose(
        'platform',
        platform,
        clock(),
        `run: ${RENEW} ${folder}; the platform needs no restart`,
      ),
      ...signers.peers.map(({ node }) =>
        diagnose(
          `signer ${node}`,
          nodes.get(node),
          clock(),
          `on its host, run: ${RENEW} HOME; the node needs no restart`,
        ),
      ),
    ]
  } finally {
    signers.close()
  }
}

/** Returns a line for a certificate that the operator has to renew; an empty list for any other. */
export function certificateLines(each: CertificateDiagnosis): string[] {
  if (each.state !== 'expires soon' && each.state !== 'expired') return []
  const verb = each.state === 'expired' ? 'expired' : 'expires'
  return [
    `${each.of}: the TLS certificate ${verb} on ${each.expires_at?.slice(0, 10)}; ${each.advice}`,
  ]
}
