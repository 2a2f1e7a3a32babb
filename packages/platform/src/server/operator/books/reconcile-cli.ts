import type { ReconcileReport } from '../../recovery/reconcile.ts'
import { callPlatform } from '../connect.ts'

const POLL_MS = 500

/**
 * Runs `custody reconcile`: starts the reconciliation in the platform, waits for its end, and
 * prints the result.
 */
export async function reconcileBooks(
  home: string,
  values: Record<string, string | boolean | undefined>,
): Promise<{ result: Record<string, unknown>; text: string[]; exitCode: number }> {
  await callPlatform(home, 'reconcile start', {
    dry_run: values['dry-run'] === true,
    gap: values['gap'],
    wait: values['wait'],
    scan_from: values['scan-from'],
  })
  for (;;) {
    const { done, ...outcome } = await callPlatform(home, 'reconcile outcome', {})
    if (done === true) {
      const report = outcome as unknown as ReconcileReport
      return { result: outcome, text: words(report), exitCode: report.ok ? 0 : 1 }
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

function words(report: ReconcileReport): string[] {
  const lines = [
    `records received from: signer ${report.nodes.heard.join(', ')}`,
    ...report.nodes.missing.map(
      ({ node, reason }) => `no records received from: signer ${node}: ${reason}`,
    ),
    ...report.users.map(
      (user) => `API user ${user.api_key} of ${user.workspace}/${user.sub_account}: ${user.done}`,
    ),
    ...report.wallets.map(({ workspace, asset }) => `wallet of ${asset} in ${workspace}: created`),
    ...report.transactions.map(
      (each) =>
        `${report.dry_run ? 'would adopt' : `adopted (${each.done})`}: ${each.kind} ${each.id} of ${each.workspace}: ` +
        `${each.amount} ${each.asset} ${each.hash} ${each.state ?? ''}`.trimEnd(),
    ),
    ...report.watched.map(
      (each) =>
        `addresses ${each.from} to ${each.to} are now watched:  ${each.workspace}/${each.sub_account} on ${each.network}`,
    ),
    ...report.addresses.map(
      ({ network, address, asset }) => `address recovered: ${address} of ${asset} on ${network}`,
    ),
    ...report.deposits.map(
      (each) =>
        `deposit ${each.id} of ${each.workspace}: ${each.amount} ${each.asset} to ${each.address}` +
        `${each.tag === null ? '' : ` tag ${each.tag}`} ${each.hash} ${each.state}`,
    ),
    ...report.rules.map(
      ({ rule, workspace, asset }) =>
        `standing rule ${rule} of ${asset} in ${workspace} is lost: its owner must create it again`,
    ),
    ...report.unadopted.map(
      (each) =>
        `${each.matters ? 'NOT ADOPTED' : 'nothing to adopt'}: ${each.purpose} ${each.transaction_id ?? ''} of ${each.workspace} ` +
        `on ${each.network} at ${each.at}: ${each.reason}`,
    ),
    ...report.waiting.map((each) => `still waiting: ${each}`),
    ...(report.audit?.differences ?? []).map((each) =>
      `${each.network} ${each.subject} ${each.asset}: ledger ${each.ledger}, chain ${each.chain} (${each.kind}) ${each.note ?? ''}`.trimEnd(),
    ),
  ]
  if (report.audit?.compared === 0)
    lines.push(
      'NOTHING was compared: the database has no address and no coin on any configured network',
    )
  const last = report.dry_run
    ? 'nothing was changed'
    : report.ok
      ? 'the ledger agrees with the chains'
      : 'there are open problems: see above, and run "custody reconcile" again'
  return [...lines, last]
}
