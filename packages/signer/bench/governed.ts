import type { CarriedApproval } from '@custody/policy'
import { TestPolicy } from '../testing/policy-cluster.ts'
import {
  ETH,
  eth,
  pay,
  SINK_ETH,
  transfer,
  type Caller,
  type SignerCluster,
  type Workspace,
} from '../testing/signer-cluster.ts'
import { good, PAIRS, type Item } from './flights.ts'

/** A payment with the approvals that the policy requires. */
export interface ApprovedItem extends Item {
  approvals: Pick<CarriedApproval, 'id'>[]
}

/** One rule that allows the payments, with 2 windows and 2 approvals, and 19 that do not apply. */
const RULES: readonly unknown[] = [
  {
    id: 'large',
    effect: 'allow',
    match: { action: ['transfer'], assets: ['ETH'] },
    amount: { max: { ETH: '10' } },
    windows: [
      { name: 'day', hours: 24, per: 'sub_account', max: { ETH: '100000' }, count: 100_000 },
      { name: 'week', hours: 168, per: 'workspace', max: { ETH: '500000' }, count: 100_000 },
    ],
    approvals: [{ group: 'treasury', k: 2 }],
  },
  ...Array.from({ length: 10 }, (_, at) => ({
    id: `small-${at}`,
    effect: 'allow',
    match: { action: ['transfer'], assets: ['ETH'], sub_accounts: [`desk-${at}`] },
    amount: { max: { ETH: '1' } },
  })),
  ...Array.from({ length: 9 }, (_, at) => ({
    id: `never-${at}`,
    effect: 'deny',
    match: {
      to: { addresses: [{ network: 'ETH', address: `0x${String(at + 1).padStart(40, '0')}` }] },
    },
  })),
]

/**
 * Whether the workspace has a policy, and who has verified the approvals before the signature:
 * `governed` no node, `presented` both nodes, because the platform has a payment judged again by two
 * nodes with each approval that it receives.
 */
export type AccountKind = 'plain' | 'governed' | 'presented'

/** An account of a workspace with a policy whose payments two people approve. */
export class GovernedAccount {
  readonly #cluster: SignerCluster
  readonly #workspace: Workspace
  readonly #caller: Caller
  readonly #policy: TestPolicy | null
  readonly #kind: AccountKind
  #nonce = 0

  private constructor(
    cluster: SignerCluster,
    workspace: Workspace,
    caller: Caller,
    policy: TestPolicy | null,
    kind: AccountKind,
  ) {
    this.#kind = kind
    this.#cluster = cluster
    this.#workspace = workspace
    this.#caller = caller
    this.#policy = policy
  }

  static async start(
    cluster: SignerCluster,
    workspace: Workspace,
    kind: AccountKind,
  ): Promise<GovernedAccount> {
    const caller = await workspace.caller()
    const policy =
      kind === 'plain' ? null : new TestPolicy(cluster, workspace, RULES, caller.api_key)
    await policy?.install()
    return new GovernedAccount(cluster, workspace, caller, policy, kind)
  }

  /** Creates payments, which two people have approved if the workspace has a policy. */
  async items(count: number): Promise<ApprovedItem[]> {
    const items: ApprovedItem[] = []
    for (let at = 0; at < count; at++) {
      const fields = { asset: 'ETH', amount: '1', destination_address: SINK_ETH }
      const request = await transfer(this.#caller, fields)
      const unsigned = eth([1, ETH.chain_index, 0], { value: 10n ** 18n, nonce: this.#nonce++ })
      items.push({ purpose: pay(request), unsigned, approvals: await this.#approvals(request) })
    }
    return items
  }

  async #approvals(request: object): Promise<ApprovedItem['approvals']> {
    const policy = this.#policy
    if (policy === null) return []
    const shown = await this.#cluster.post(1, '/policy/judge', { request, decisions: [] })
    good(shown)
    const decisions = ['dan', 'erin'].map((by) => policy.decide(by, shown.body.statement))
    if (this.#kind === 'presented')
      for (const node of PAIRS[0])
        good(await this.#cluster.post(node, '/policy/judge', { request, decisions }))
    return decisions
  }

  /** Signs a payment at the first pair of nodes. */
  async sign({ purpose, unsigned, approvals }: ApprovedItem): Promise<void> {
    const [first, partner] = PAIRS[0]
    const policy = approvals.length === 0 ? {} : { policy: { approvals } }
    const { name: workspace } = this.#workspace
    good(
      await this.#cluster.post(first, '/sign', {
        workspace,
        purpose,
        unsigned,
        partner,
        ...policy,
      }),
    )
  }
}
