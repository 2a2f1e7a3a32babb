import { addressAt, traitsOf, type Network } from '@custody/chains'
import type { Act } from '@custody/policy'
import { Refusal } from '../../errors.ts'
import { isRefund } from '../../intent/actions.ts'
import type { ForwardIntent } from '../../intent/forward.ts'
import type { PayIntent } from '../../intent/pay.ts'
import type { Proven } from '../../intent/request.ts'
import type { StakeIntent } from '../../intent/stake.ts'
import { State } from '../../store/state.ts'
import type { Context } from '../context.ts'
import { feeOfReplacement } from '../cancel.ts'
import type { Subject } from '../order.ts'

/** The part of an act that a caller's signed request determines, whatever transaction it is for. */
export interface Requested extends Pick<
  Act,
  'id' | 'subject' | 'step' | 'action' | 'asset' | 'amount' | 'standing' | 'resource'
> {
  proven: Proven
  /** Destination in canonical form. */
  address: string
  tag: string | null
}

/**
 * `act`: the transaction makes the requested payment or stake itself. `replacement`: it cancels the
 * payment at a higher fee. `support`: it is gas funding or lent energy for it.
 */
type Role = 'act' | 'replacement' | 'support'

/** A caller's verified request with its meaning. */
interface Caller<Intent> {
  proven: Proven
  want: Intent
}

/** Returns what a caller's payment requests. A speed-up requests the same payment. */
export function requestedPay({
  proven,
  want,
  step,
}: Caller<PayIntent> & Pick<Requested, 'step'>): Requested {
  return {
    proven,
    id: proven.transaction_id,
    subject: want.content,
    step,
    action: isRefund(proven) ? 'refund' : 'transfer',
    asset: want.asset,
    amount: want.amount,
    address: want.destination,
    tag: want.tag,
    standing: null,
    resource: null,
  }
}

/**
 * Returns what one forward of a standing rule requests: at least the minimum amount of the rule.
 * People approve the rule, so its public ID is the ID of each of its forwards.
 */
export function requestedForward({
  proven,
  want,
  step,
}: Caller<ForwardIntent> & Pick<Requested, 'step'>): Requested {
  return {
    proven,
    id: want.rule_id,
    subject: want.content,
    step,
    action: 'forward',
    asset: want.asset,
    amount: want.min_amount,
    address: want.destination,
    tag: want.tag,
    standing: {
      min_amount: want.min_amount,
      daily_cap: want.daily_cap,
      ends_at: want.expires_at,
    },
    resource: null,
  }
}

/**
 * Returns what a stake requests; empty for an unstake and a release, to which no policy applies. The
 * transactions of a stake, which freeze the coin and delegate its resource, are one act with the
 * step of the first, which alone is charged to windows.
 */
export function requestedStake({ proven, want }: Caller<StakeIntent>): Requested[] {
  if (want.action !== 'stake') return []
  return [
    {
      proven,
      id: proven.transaction_id,
      subject: want.content,
      step: JSON.stringify(['freeze', want.key]),
      action: 'stake',
      asset: want.asset,
      amount: want.amount,
      address: want.address,
      tag: null,
      standing: null,
      resource: want.resource,
    },
  ]
}

/**
 * Returns the acts that callers requested, as a policy judges them for one transaction.
 * @param subject the transaction, on the network of the acts and with the key of their workspace
 * @throws Refusal `POLICY_DENIED` if a sub-account has no name, or `BAD_ORDER` if `policy.to_path` is
 *   the path of none of the destinations
 */
export function actsOf(
  context: Pick<Context, 'store'>,
  subject: Subject,
  requested: readonly Requested[],
  role: Role,
): Act[] {
  const { order, network, key, decoded } = subject
  const own = ownDestination({ path: order.policy?.to_path, network, key }, requested)
  const fee =
    role === 'support'
      ? { max: 0n }
      : { max: decoded.fee_max, ...(role === 'act' ? reservedFor(subject) : {}) }
  return requested.map((each): Act => {
    const payment = role === 'act' ? decoded.payments[0] : undefined
    return {
      ...actOf(context, each, { network, own, fee }),
      amount: each.action === 'forward' && payment ? payment.amount : each.amount,
    }
  })
}

/** A payment reserves in windows what its cancellation may cost without being judged. */
const reservedFor = (subject: Subject): { replacement?: bigint } =>
  traitsOf(subject.network).cancellation === null
    ? {}
    : { replacement: feeOfReplacement(subject, [subject.decoded]) }

/**
 * Returns the act that a caller requested.
 * @param own from {@link ownDestination}
 * @param fee of its transaction, in the smallest unit of the native coin
 * @throws Refusal `POLICY_DENIED` if the sub-account has no name
 */
export function actOf(
  context: Pick<Context, 'store'>,
  { proven, address, tag, ...request }: Requested,
  {
    network,
    own,
    fee,
  }: { network: Network; own: OwnAddress | null; fee: Omit<Act['fee'], 'limit'> },
): Act {
  const { workspace, sub_account, api_key, person } = proven.enrolment
  const isOwn = own !== null && address === own.address
  return {
    ...request,
    workspace,
    sub_account: subAccountName(context, proven),
    api_key,
    // Only this node's record names the person. The order and the request cannot.
    ...(person === undefined ? {} : { person }),
    network: network.code,
    to: {
      address,
      tag,
      own: isOwn ? (own.subAccount === sub_account ? 'sub_account' : 'workspace') : 'unknown',
    },
    // Both are in the smallest unit of the native coin, and rule 9 limits the fee to the cap.
    fee: { ...fee, limit: BigInt(network.fee_cap) },
    issued_at: proven.iat,
  }
}

/** An own address of the workspace, and the index of its sub-account. */
interface OwnAddress {
  address: string
  subAccount: number
}

/**
 * Returns the own address at the path that the order names, with its sub-account; null if the order
 * names none. Deposit addresses that differ only in their tag have the same path. Gas funding may be
 * for several payments, of which at least one must have this destination.
 * @throws Refusal `BAD_ORDER` if the path is that of none of the destinations
 */
export function ownDestination(
  { path, network, key }: { path: number[] | undefined } & Pick<Subject, 'network' | 'key'>,
  requested: readonly Pick<Requested, 'address'>[],
): OwnAddress | null {
  if (path === undefined) return null
  const address = path[1] === network.chain_index ? addressAt(network, key, path) : null
  if (address === null || requested.every((each) => each.address !== address)) {
    throw new Refusal(
      'BAD_ORDER',
      `policy.to_path: the path ${path.join('/')} does not give the destination address`,
    )
  }
  return { address, subAccount: path[0] as number }
}

/** Returns the name of the caller's sub-account: of the enrolment, or of the record. */
function subAccountName({ store }: Pick<Context, 'store'>, { enrolment }: Proven): string {
  const { workspace, sub_account, sub_account_name } = enrolment
  const name =
    sub_account_name ??
    store.state.subAccountNames.get(State.subAccountIndexKey(workspace, sub_account)) ??
    null
  if (name === null) {
    throw new Refusal(
      'POLICY_DENIED',
      `The sub-account ${sub_account} has no name on this node's record; enrol its API key again by name`,
    )
  }
  return name
}
