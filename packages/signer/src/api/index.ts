import { getHeapStatistics } from 'node:v8'
import { fromHeader } from '@custody/request-auth/orders'
import { z } from 'zod'
import packageFile from '../../package.json' with { type: 'json' }
import { Refusal } from '../errors.ts'
import { orderSchema } from '../policy/order.ts'
import { dryRunBodySchema } from '../policy/governed/dry-run.ts'
import { previewBodySchema } from '../policy/governed/preview.ts'
import { RUN_MAX } from '../store/entries/values.ts'
import { parseBody, shaped } from '../transport/body.ts'
import { certificateExpiry } from '../transport/own-certificate.ts'
import type { NodeContext } from '../node-context.ts'
import { addressesBodySchema, announceAddresses } from './addresses.ts'
import { attest, attestBodySchema } from './attest.ts'
import { history, historyBodySchema } from './history.ts'
import { policy, policyBodySchema, presentBodySchema, presentPolicy } from './policy.ts'
import { versions, versionsBodySchema } from './policy-versions.ts'
import { receipt, receiptBodySchema, receipts, receiptsBodySchema } from './receipt.ts'
import { voidBodySchema, voidIntent } from './void.ts'
import { withdraw, withdrawBodySchema } from './withdraw.ts'

const keyBodySchema = z.strictObject({
  workspace: z.string().min(1).max(128),
  curve: z.enum(['secp256k1', 'ed25519']),
})
const partnerSchema = z.int().min(1).max(3)
const signBodySchema = orderSchema.extend({ partner: partnerSchema })
const runBodySchema = z.strictObject({
  workspace: orderSchema.shape.workspace,
  partner: partnerSchema,
  run: z
    .array(orderSchema.omit({ workspace: true }))
    .min(1)
    .max(RUN_MAX),
})

/**
 * Parses a call's body like the parser of the operator's commands, with a separate error for a fuel
 * order without a purpose.
 */
function shapedText<T>(schema: z.ZodType<T>, text: string): T {
  const value = parseBody(text)
  const purpose = (value as { purpose?: { kind?: unknown; for?: unknown } } | null)?.purpose
  if (purpose?.kind === 'fuel' && purpose.for === undefined) {
    throw new Refusal(
      'FUEL_WITHOUT_INTENT',
      'Fuel requires the intent or sweep that it is for, and this request contains none',
    )
  }
  return shaped(schema, value)
}

/** Handles the platform's requests. @param order value of the header `custody-order` */
export async function platformCall(
  parts: NodeContext,
  method: string,
  path: string,
  text: string,
  order?: string,
): Promise<{ status: number; body: unknown }> {
  const call = `${method} ${path}`
  if (call === 'GET /status') return { status: 200, body: status(parts) }
  if (parts.restoring())
    throw new Refusal(
      'RESTORING',
      'The node was restored and has not yet imported the records of its peers',
    )
  // The history does not depend on the clock.
  if (call !== 'POST /history') await parts.hostClock.settle()
  switch (call) {
    case 'POST /receipt':
      return { status: 200, body: await receipt(parts, shapedText(receiptBodySchema, text)) }
    case 'POST /receipts':
      return { status: 200, body: await receipts(parts, shapedText(receiptsBodySchema, text)) }
    case 'POST /key': {
      const { workspace, curve } = shapedText(keyBodySchema, text)
      const body = await parts.keyring.key(workspace, curve)
      return { status: 'place' in body ? 202 : 200, body }
    }
    case 'POST /sign': {
      const { partner, ...wanted } = shapedText(signBodySchema, text)
      const body = await parts.coordinator.sign(wanted, partner, fromHeader(order))
      return { status: 200, body }
    }
    case 'POST /sign-run': {
      const { partner, workspace, run } = shapedText(runBodySchema, text)
      return {
        status: 200,
        body: {
          run: await parts.coordinator.signAll(
            run.map((each) => ({ workspace, ...each })),
            partner,
            fromHeader(order),
          ),
        },
      }
    }
    case 'POST /history':
      return { status: 200, body: history(parts, shapedText(historyBodySchema, text)) }
    case 'POST /withdraw':
      return { status: 200, body: withdraw(parts, shapedText(withdrawBodySchema, text)) }
    case 'POST /void':
      return { status: 200, body: await voidIntent(parts, shapedText(voidBodySchema, text)) }
    case 'POST /addresses':
      return { status: 200, body: announceAddresses(parts, shapedText(addressesBodySchema, text)) }
    case 'POST /attest':
      return { status: 200, body: await attest(parts, shapedText(attestBodySchema, text)) }
    default:
      return { status: 200, body: await policyCall(parts, call, text) }
  }
}

/** Handles the platform's requests about policies. */
async function policyCall(parts: NodeContext, call: string, text: string): Promise<unknown> {
  switch (call) {
    case 'POST /policy':
      return policy(parts, shapedText(policyBodySchema, text))
    case 'POST /policy/judge':
      return await parts.judge.preview(shapedText(previewBodySchema, text))
    case 'POST /policy/evaluate':
      return await parts.judge.dryRun(shapedText(dryRunBodySchema, text))
    case 'POST /policy/versions':
      return versions(parts, shapedText(versionsBodySchema, text))
    case 'POST /policy/windows': {
      const { workspace } = shapedText(policyBodySchema, text)
      return parts.judge.windowUses(workspace)
    }
    case 'POST /policy/present':
      return await presentPolicy(parts, shapedText(presentBodySchema, text))
    default:
      throw new Refusal('NOT_FOUND', 'No such endpoint')
  }
}

/**
 * Share of the heap that is in use. The index of the record grows with each transfer, and a process whose
 * heap is full ends.
 */
function heapUsedPercent(): number {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
  return Math.round((used / limit) * 100)
}

export function status({
  config,
  store,
  keyring,
  peers,
  bans,
  banReports,
  restoring,
  governance,
  judge,
}: NodeContext): Record<string, unknown> {
  return {
    node: config.node,
    version: packageFile.version,
    ready: !restoring(),
    mode: config.mode,
    clock: store.seconds(),
    heap_used_percent: heapUsedPercent(),
    clock_doubted: store.record.doubted() !== null,
    keys: store.state.keys.size,
    enrolments: store.state.enrolments.size,
    pool: keyring.poolSizes(),
    key_queue: keyring.queueStatus(),
    keys_not_in_backup: keyring.notInBackup(),
    record: {
      height: store.record.height,
      head: store.record.head,
      generation: store.state.generation,
    },
    peers: peers.nodes.map((node) => ({ node, reachable: peers.reachable(node) })),
    policies_apart: governance.exchange.countApart(),
    policies_unproven: governance.exchange.unproven(),
    policy_windows_nearly_full: judge.windowsNearlyFull(),
    policy_resets: governance.exchange.resets.count(),
    bans: bans.nodes,
    ban_reports: banReports.current.map(({ node, by }) => ({ node, by })),
    certificate_expires_at: certificateExpiry(config).toISOString(),
  }
}
