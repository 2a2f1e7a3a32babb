import type { Registry } from '@custody/chains'
import { formatUnits } from '@custody/policy'
import { z } from 'zod'
import { endpoint } from '../../core/http/endpoint.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import { askAll, disagreement, type Answer } from './node-answers.ts'
import { policyRef } from './shapes.ts'

interface Services {
  registry: Registry
  signers: SignerNodes
}

const USES_MAX = 200
const LIMITS_MAX = 300
const HOURS_MAX = 168

const limitShape = z
  .object({
    asset: z
      .string()
      .max(64)
      .nullable()
      .meta({ description: 'null: the number of payments, not an amount' }),
    used: z.string().max(100).meta({ description: 'In the unit of the asset' }),
    max: z.string().max(100),
  })
  .meta({ id: 'PolicyWindowLimit', examples: [{ asset: 'ETH', used: '1.5', max: '5' }] })

const useShape = z
  .object({
    rule: z.string().max(64),
    window: z.string().max(64),
    per: z.enum(['workspace', 'sub_account', 'api_key', 'destination']),
    share: z.boolean().meta({
      description: 'true: the part of one sub-account in a window of the whole workspace',
    }),
    of: z.string().max(400).nullable().meta({
      description:
        'What is counted: a sub-account, an API key, or the network and address of a destination; null: the whole workspace',
    }),
    hours: z.int().min(1).max(HOURS_MAX),
    limits: z.array(limitShape).max(LIMITS_MAX),
  })
  .meta({ id: 'PolicyWindowUse' })
type WindowUse = z.output<typeof useShape>

const digits = z.string().regex(/^\d{1,100}$/)
/** Response of a node to `POST /policy/windows` (packages/signer/README.md). */
const nodeWindows = z.union([
  z.object({
    policy: policyRef,
    windows: z
      .array(
        z.object({
          rule: z.string().max(64),
          window: z.string().max(64),
          per: z.enum(['workspace', 'sub_account', 'api_key', 'destination', 'share']),
          of: z.array(z.string().max(200)).max(2),
          hours: z.int().min(1).max(HOURS_MAX),
          readings: z
            .array(z.object({ asset: z.string().max(64).nullable(), used: digits, max: digits }))
            .max(LIMITS_MAX),
        }),
      )
      .max(USES_MAX),
    left_off: z.boolean(),
  }),
  z.object({ policy: z.null() }),
])
type NodeWindows = z.output<typeof nodeWindows>
type Governed = Extract<NodeWindows, { windows: unknown }>
type NodeUse = Governed['windows'][number]

const isGoverned = (value: NodeWindows): value is Governed => value.policy !== null

/** Lists what counts in the time windows of the policy. */
export const listPolicyWindows = endpoint({
  id: 'listPolicyWindows',
  tag: 'Policy',
  description:
    'Returns what counts now in the time windows of the policy in force, the most used first. Each signer node reports its own record and what its peers have sent it; of several reports, the larger amount is returned. A window that is not listed is empty.',
  errors: ['SIGNERS_UNAVAILABLE'],
  method: 'GET',
  path: '/dac/v1/policy/windows',
  summary: 'List the use of the policy’s time windows',
  access: 'read',
  response: z.object({
    policy: policyRef.nullable().meta({ description: 'null: the workspace has no policy' }),
    data: z.array(useShape).max(USES_MAX),
    left_off: z.boolean().meta({ description: 'Whether less used windows were left off' }),
    by: z
      .array(z.string().max(10))
      .max(3)
      .meta({ description: 'Signer nodes that reported it', examples: [['node 1', 'node 3']] }),
  }),
  async handler({ caller: { workspace } }, { registry, signers }: Services) {
    const { governed, by } = await governedWindows(signers, workspace)
    const policy = governed[0]?.policy ?? null
    const data = largest(governed.flatMap(({ windows }) => windows))
    return {
      body: {
        policy,
        data: data.slice(0, USES_MAX).map((use) => present(registry, use)),
        left_off: data.length > USES_MAX || governed.some(({ left_off }) => left_off),
        by,
      },
    }
  },
})

/**
 * Queries the signer nodes for the time windows of a workspace's policy.
 * @param workspace name of the workspace
 * @throws ApiError `SIGNERS_UNAVAILABLE` if no two nodes have the same policy in force
 */
async function governedWindows(signers: SignerNodes, workspace: string) {
  const answers = await askAll(signers, nodeWindows, '/policy/windows', { workspace })
  const given = agreeing(answers)
  if (!given) throw disagreement(answers)
  const by = given.map(({ node }) => `node ${node}`).sort()
  return { governed: given.flatMap(({ value }) => (isGoverned(value) ? [value] : [])), by }
}

/**
 * Returns the time windows of a workspace's policy of which more than a part is used, as
 * `rule, window`, each once.
 * @param workspace name of the workspace
 * @param percent part of a limit
 * @throws ApiError `SIGNERS_UNAVAILABLE` if no two nodes have the same policy in force
 */
export async function windowsAbove(
  signers: SignerNodes,
  workspace: string,
  percent: number,
): Promise<string[]> {
  const { governed } = await governedWindows(signers, workspace)
  const above = ({ readings }: NodeUse) =>
    readings.some(
      ({ used, max }) => used !== '0' && BigInt(used) * 100n > BigInt(max) * BigInt(percent),
    )
  const uses = largest(governed.flatMap(({ windows }) => windows)).filter(above)
  return [...new Set(uses.map(({ rule, window }) => `${rule}, ${window}`))]
}

/** Returns the responses of at least two nodes with the same policy in force; undefined if none agree. */
function agreeing(answers: readonly Answer<NodeWindows>[]) {
  const given = answers.flatMap((answer) => ('value' in answer ? [answer] : []))
  const groups = Map.groupBy(given, ({ value }) => value.policy?.hash ?? '')
  return [...groups.values()].find((group) => group.length >= 2)
}

/** Returns each sum once, with the larger of the reported amounts, the most used first. */
function largest(uses: readonly NodeUse[]): NodeUse[] {
  const sums = new Map<string, NodeUse>()
  for (const use of uses) {
    const name = JSON.stringify([use.rule, use.window, use.per, use.of])
    const known = sums.get(name)
    const usedOf = (asset: string | null) =>
      known?.readings.find((each) => each.asset === asset)?.used ?? '0'
    const readings = use.readings.map((each) =>
      BigInt(usedOf(each.asset)) > BigInt(each.used) ? { ...each, used: usedOf(each.asset) } : each,
    )
    sums.set(name, { ...use, readings })
  }
  return [...sums.values()].sort((a, b) => shareOf(b) - shareOf(a))
}

const WHOLE = 1_000_000n
/** Largest used share of the limits of a sum, in millionths, for the order only. */
const shareOf = ({ readings }: NodeUse): number =>
  Math.max(
    0,
    ...readings.map(({ used, max }) =>
      max === '0' ? Number(WHOLE) : Number((BigInt(used) * WHOLE) / BigInt(max)),
    ),
  )

function present(
  registry: Registry,
  { rule, window, per, of, hours, readings }: NodeUse,
): WindowUse {
  const amountOf = (asset: string | null, units: string): string =>
    asset === null ? units : formatUnits(BigInt(units), registry.asset(asset)?.decimals ?? 0)
  const isShare = per === 'share'
  return {
    rule,
    window,
    per: isShare ? 'workspace' : per,
    share: isShare,
    of: of.length === 0 ? null : of.join(' '),
    hours,
    limits: readings.map(({ asset, used, max }) => ({
      asset,
      used: amountOf(asset, used),
      max: amountOf(asset, max),
    })),
  }
}
