import type { Environment } from '../../../../core/environment.ts'
import type { SignerNodes } from '../../../../core/signing/nodes.ts'
import type { Metrics } from '../../../../core/metrics.ts'
import { heardStatus } from '../../../../core/signing/status.ts'
import { canSign, SIGNERS_NEEDED } from '../readiness.ts'

interface Services {
  environment: Environment
  signers: SignerNodes
  metrics: Metrics
}

export async function collectNodes({ signers, metrics, environment }: Services): Promise<void> {
  const nodes = await heardStatus(signers)
  metrics.signerClock.reset()
  metrics.signerKeysReady.reset()
  metrics.signerPeersDown.reset()
  metrics.signerHeapUsed.reset()
  metrics.signerPoliciesApart.reset()
  metrics.signerPoliciesUnproven.reset()
  metrics.signerPolicyResets.reset()
  metrics.signerPolicyWindowsNearlyFull.reset()
  metrics.signerBans.reset()
  for (const each of nodes) {
    const node = String(each.node)
    metrics.signerUp.labels(node).set(canSign(each) ? 1 : 0)
    if (each.status === null) continue
    const { clockS, keysReady, peersDown, policiesApart, policyResets, bans } = each.status
    metrics.signerPolicyWindowsNearlyFull.labels(node).set(each.status.windowsNearlyFull)
    if (clockS !== null)
      metrics.signerClock.labels(node).set(clockS - Math.floor(environment.now() / 1000))
    for (const [curve, count] of Object.entries(keysReady))
      metrics.signerKeysReady.labels(node, curve).set(count)
    metrics.signerPeersDown.labels(node).set(peersDown)
    const { heapUsedPercent } = each.status
    if (heapUsedPercent !== null) metrics.signerHeapUsed.labels(node).set(heapUsedPercent / 100)
    metrics.signerPoliciesApart.labels(node).set(policiesApart)
    metrics.signerPoliciesUnproven.labels(node).set(each.status.policiesUnproven)
    metrics.signerPolicyResets.labels(node).set(policyResets)
    for (const peer of nodes) {
      if (peer.node !== each.node)
        metrics.signerBans.labels(node, String(peer.node)).set(bans.includes(peer.node) ? 1 : 0)
    }
  }
  const expiries = signers.certificateExpiries()
  metrics.platformCertificateExpiry.set(expiries.platform.getTime() / 1000)
  for (const [node, expiry] of expiries.nodes)
    metrics.signerCertificateExpiry.labels(String(node)).set(expiry.getTime() / 1000)
  metrics.signingPossible.set(nodes.filter(canSign).length >= SIGNERS_NEEDED ? 1 : 0)
}
