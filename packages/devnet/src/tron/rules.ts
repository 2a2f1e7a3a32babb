import { FORWARDER, FORWARDER_ENERGY, forwardedTo, type Internal } from './forwarder.ts'
import type { Call, Log, TvmResult } from './tvm.ts'
import { RESOURCE_NAMES, type Tx } from './transaction.ts'

export const SLOT_MS = 3000
const SUN = 1_000_000n
const DAY_MS = 86_400_000
/** Used resources recover over a day. */
const WINDOW_SLOTS = BigInt(DAY_MS / SLOT_MS)
const RESULT_BYTES = 64
const BANDWIDTH = 0
const ENERGY = 1

/** Values that governance decides, under the names that nodes use. */
export const PARAMETERS = {
  getMaintenanceTimeInterval: 21_600_000,
  getCreateAccountFee: 100_000,
  getTransactionFee: 1000,
  getCreateNewAccountFeeInSystemContract: 1_000_000,
  getCreateNewAccountBandwidthRate: 1,
  getEnergyFee: 100,
  getMaxFeeLimit: 15_000_000_000,
  getMemoFee: 1_000_000,
  getFreeNetLimit: 600,
  getTotalNetLimit: 43_200_000_000,
  getTotalEnergyLimit: 180_000_000_000,
  getTotalEnergyCurrentLimit: 180_000_000_000,
  getUnfreezeDelayDays: 14,
  getAllowDynamicEnergy: 1,
  getMaxDelegateLockPeriod: 864_000,
} as const
const UNFREEZING_MAX = 32
/**
 * TRX that others have staked, to which a share is relative. The values resemble the main
 * network's.
 */
const OTHERS_WEIGHT = [25_000_000_000n, 19_000_000_000n] as const
const TOTAL_LIMIT = [
  BigInt(PARAMETERS.getTotalNetLimit),
  BigInt(PARAMETERS.getTotalEnergyCurrentLimit),
] as const

type Pair = [bandwidth: bigint, energy: bigint]
type Usage = { used: bigint; slot: bigint }
export type Account = {
  address: string
  created: number
  balance: bigint
  /** Stake in sun: own and not lent, lent to others, borrowed from others. */
  frozen: Pair
  lent: Pair
  borrowed: Pair
  unfreezing: { resource: 0 | 1; amount: bigint; expires: number }[]
  /** Used part of the staked resources, by resource, and of the free bandwidth. */
  usage: [Usage, Usage]
  free: Usage
}

/** A broadcast was rejected; the message is in a node's words. */
export class Refusal extends Error {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

const invalid = (message: string): Refusal =>
  new Refusal('CONTRACT_VALIDATE_ERROR', `Contract validate error : ${message}`)

interface Below {
  account: (address: string) => Account | undefined
  delegation: (key: string) => Pair | undefined
  readonly staked: Pair
}

/** Accounts with pending changes that are committed or discarded together. */
export class Draft implements Below {
  readonly #below: Below | undefined
  readonly #accounts = new Map<string, Account>()
  readonly #delegations = new Map<string, Pair>()
  staked: Pair

  constructor(below?: Below) {
    this.#below = below
    this.staked = below ? [...below.staked] : [0n, 0n]
  }

  account(address: string): Account | undefined {
    const own = this.#accounts.get(address)
    if (own || !this.#below) return own
    const below = this.#below.account(address)
    if (!below) return undefined
    const copy = structuredClone(below)
    this.#accounts.set(address, copy)
    return copy
  }

  delegation(key: string): Pair | undefined {
    return this.#delegations.get(key) ?? this.#below?.delegation(key)
  }

  setDelegation(from: string, to: string, resource: number, change: bigint): void {
    const pair: Pair = [...(this.delegation(from + to) ?? [0n, 0n])]
    pair[resource as 0 | 1] += change
    this.#delegations.set(from + to, pair)
  }

  /** Returns the accounts to which an account lends, and those that lend to it. */
  delegationsOf(address: string): { to: string[]; from: string[] } {
    const keys = [...this.#delegations]
      .filter(([, pair]) => pair[0] + pair[1] > 0n)
      .map(([key]) => key)
    return {
      to: keys.filter((key) => key.startsWith(address)).map((key) => key.slice(42)),
      from: keys.filter((key) => key.endsWith(address)).map((key) => key.slice(0, 42)),
    }
  }

  create(address: string, time: number): Account {
    const account: Account = {
      address,
      created: time,
      balance: 0n,
      frozen: [0n, 0n],
      lent: [0n, 0n],
      borrowed: [0n, 0n],
      unfreezing: [],
      usage: [
        { used: 0n, slot: 0n },
        { used: 0n, slot: 0n },
      ],
      free: { used: 0n, slot: 0n },
    }
    this.#accounts.set(address, account)
    return account
  }

  /** Commits the changes of a draft that is based on this one. */
  keep(above: Draft): void {
    for (const [address, account] of above.#accounts) this.#accounts.set(address, account)
    for (const [key, pair] of above.#delegations) this.#delegations.set(key, pair)
    this.staked = [...above.staked]
  }
}

export function usedOf({ used, slot }: Usage, now: bigint): bigint {
  const passed = now - slot
  return passed >= WINDOW_SLOTS
    ? 0n
    : (used * (WINDOW_SLOTS - (passed > 0n ? passed : 0n))) / WINDOW_SLOTS
}

export function weightOf(draft: Below, resource: 0 | 1): bigint {
  return OTHERS_WEIGHT[resource] + draft.staked[resource] / SUN
}

/** Returns the points per day that an account's stake provides. */
export function limitOf(draft: Below, account: Account, resource: 0 | 1): bigint {
  return (
    (((account.frozen[resource] + account.borrowed[resource]) / SUN) * TOTAL_LIMIT[resource]) /
    weightOf(draft, resource)
  )
}

/** Returns the stake that can be lent, without the part that today's use requires. */
export function delegatable(draft: Below, account: Account, resource: 0 | 1, slot: bigint): bigint {
  const used =
    (usedOf(account.usage[resource], slot) * weightOf(draft, resource) * SUN) /
    TOTAL_LIMIT[resource]
  const ownUse = used > account.borrowed[resource] ? used - account.borrowed[resource] : 0n
  return account.frozen[resource] > ownUse ? account.frozen[resource] - ownUse : 0n
}

function spend(usage: Usage, points: bigint, slot: bigint): void {
  usage.used = usedOf(usage, slot) + points
  usage.slot = slot
}

type ContractRet = 'SUCCESS' | 'REVERT' | 'OUT_OF_ENERGY'
export type Outcome = {
  contractRet: ContractRet
  fee: bigint
  netUsage: bigint
  netFee: bigint
  energyUsage: bigint
  energyFee: bigint
  energyTotal: bigint
  energyPenalty: bigint
  logs: Log[]
  /** TRX that contracts paid. */
  internal: Internal[]
  output: string
  message: string
  withdrawn: bigint
  unfrozen: bigint
  /** A call that changed a contract's state. A start repeats it. */
  call?: Call
  /** Result of the engine, for the journal. */
  tvm?: TvmResult
}

/** Runs a call; `limit` is the maximum energy that it may use. */
export type Run = (call: Call, limit: bigint) => Promise<TvmResult>

export function slotOf(time: number): bigint {
  return BigInt(Math.floor(time / SLOT_MS))
}

/**
 * Applies one transaction at a block's time. An out-of-energy or reverted call is accepted, and
 * paid for.
 * @throws Refusal if a node would reject the transaction
 */
export async function apply(
  draft: Draft,
  tx: Tx,
  time: number,
  isContract: (address: string) => boolean,
  run: Run,
): Promise<Outcome> {
  const slot = slotOf(time)
  const owner = draft.account(text(tx, 'owner_address'))
  if (!owner) throw invalid(`account [${text(tx, 'owner_address')}] does not exist`)
  const outcome: Outcome = {
    contractRet: 'SUCCESS',
    fee: 0n,
    netUsage: 0n,
    netFee: 0n,
    energyUsage: 0n,
    energyFee: 0n,
    energyTotal: 0n,
    energyPenalty: 0n,
    logs: [],
    internal: [],
    output: '',
    message: '',
    withdrawn: 0n,
    unfrozen: 0n,
  }
  const creates = tx.type === 'TransferContract' && !draft.account(text(tx, 'to_address'))
  const execution = { draft, owner, tx, time, slot, isContract, outcome }
  payBandwidth(execution, creates)
  if (tx.memo.length > 0) {
    burn(owner, BigInt(PARAMETERS.getMemoFee))
    outcome.fee += BigInt(PARAMETERS.getMemoFee)
  }
  if (tx.type === 'TriggerSmartContract') await trigger(execution, run)
  else ACTUATORS[tx.type]?.(execution)
  return outcome
}

function text(tx: Tx, name: string): string {
  return String(tx.value[name])
}

function number(tx: Tx, name: string): bigint {
  return tx.value[name] as bigint
}

function burn(account: Account, sun: bigint): void {
  if (account.balance < sun)
    throw new Refusal('BANDWITH_ERROR', 'Account resource insufficient error.')
  account.balance -= sun
}

/** A transaction in execution, and what it may read and change. */
interface Execution {
  draft: Draft
  owner: Account
  tx: Tx
  /** Time of the block in ms, and the slot of resource usage that it is in. */
  time: number
  slot: bigint
  isContract: (address: string) => boolean
  outcome: Outcome
}

function payBandwidth({ draft, owner, tx, slot, outcome }: Execution, creates: boolean): void {
  const points = BigInt(tx.size + RESULT_BYTES)
  const usage = owner.usage[BANDWIDTH]
  if (limitOf(draft, owner, BANDWIDTH) - usedOf(usage, slot) >= points) {
    spend(usage, points, slot)
    outcome.netUsage = points
    return
  }
  // Free points cannot be used to create accounts.
  if (!creates && BigInt(PARAMETERS.getFreeNetLimit) - usedOf(owner.free, slot) >= points) {
    spend(owner.free, points, slot)
    outcome.netUsage = points
    return
  }
  const fee = creates
    ? BigInt(PARAMETERS.getCreateAccountFee)
    : points * BigInt(PARAMETERS.getTransactionFee)
  burn(owner, fee)
  outcome.netFee = fee
  outcome.fee += fee
}

/** Returns what a call of the forwarder does. Its TRX moves only if it does not revert. */
function forwarding(data: string): TvmResult {
  const reverted = forwardedTo(data) === undefined
  return { energy: FORWARDER_ENERGY, penalty: 0, output: '', logs: [], reverted }
}

/** Moves the TRX of a call to the address in its data. */
function forward({ draft, owner, tx, time, outcome }: Execution): void {
  const [amount, address] = [number(tx, 'call_value'), forwardedTo(text(tx, 'data')) as string]
  if (amount === 0n) return
  burn(owner, amount)
  const to = draft.account(address) ?? draft.create(address, time)
  to.balance += amount
  outcome.internal.push({ from: FORWARDER, to: address, amount })
}

async function trigger(execution: Execution, run: Run): Promise<void> {
  const { draft, owner, tx, slot, isContract, outcome } = execution
  const to = text(tx, 'contract_address')
  const isForwarder = to === FORWARDER
  if (!isContract(to)) throw invalid('No contract or not a smart contract')
  if (tx.feeLimit < 0n || tx.feeLimit > BigInt(PARAMETERS.getMaxFeeLimit)) {
    throw invalid(`feeLimit must be >= 0 and <= ${PARAMETERS.getMaxFeeLimit}`)
  }
  if ((number(tx, 'call_value') !== 0n && !isForwarder) || number(tx, 'call_token_value') !== 0n)
    throw invalid('contracts of this chain take no value')
  if (number(tx, 'call_value') > owner.balance)
    throw invalid('Validate InternalTransfer error, balance is not sufficient.')
  const price = BigInt(PARAMETERS.getEnergyFee)
  const usage = owner.usage[ENERGY]
  const rest = limitOf(draft, owner, ENERGY) - usedOf(usage, slot)
  const staked = rest > 0n ? rest : 0n
  // fee_limit also caps staked energy.
  const affordable = staked + owner.balance / price
  const limit = affordable < tx.feeLimit / price ? affordable : tx.feeLimit / price
  const call = { from: owner.address, to, data: text(tx, 'data') }
  const result = isForwarder ? forwarding(call.data) : await run(call, limit)
  if (!isForwarder) outcome.tvm = result
  const isOut = BigInt(result.energy) > limit
  const energy = isOut ? limit : BigInt(result.energy)
  outcome.energyTotal = energy
  outcome.energyPenalty = isOut ? 0n : BigInt(result.penalty)
  outcome.energyUsage = energy < staked ? energy : staked
  outcome.energyFee = (energy - outcome.energyUsage) * price
  if (outcome.energyUsage > 0n) spend(usage, outcome.energyUsage, slot)
  burn(owner, outcome.energyFee)
  outcome.fee += outcome.energyFee
  if (isOut) {
    outcome.contractRet = 'OUT_OF_ENERGY'
    outcome.message = `Not enough energy for 'SSTORE' operation executing: curInvokeEnergyLimit[${limit}]`
  } else if (result.reverted) {
    outcome.contractRet = 'REVERT'
    outcome.message = 'REVERT opcode executed'
    outcome.output = result.output
  } else {
    outcome.output = result.output
    outcome.logs = result.logs
    if (isForwarder) forward(execution)
    else outcome.call = call
  }
}

type Actuator = (execution: Execution) => void

function resourceOf(tx: Tx): 0 | 1 {
  const index = RESOURCE_NAMES.indexOf(text(tx, 'resource') as (typeof RESOURCE_NAMES)[number])
  if (index < 0) throw invalid('ResourceCode error, valid ResourceCode[BANDWIDTH、ENERGY]')
  return index as 0 | 1
}

/** Returns matured amounts to the balance. */
function release(owner: Account, time: number): bigint {
  const total = matured(owner, time)
  owner.unfreezing = owner.unfreezing.filter(({ expires }) => expires > time)
  owner.balance += total
  return total
}

export function matured(owner: Account, time: number): bigint {
  return owner.unfreezing
    .filter(({ expires }) => expires <= time)
    .reduce((sum, { amount }) => sum + amount, 0n)
}

export function unfreezesLeft(owner: Account | undefined, time: number): number {
  return UNFREEZING_MAX - (owner?.unfreezing.filter(({ expires }) => expires > time).length ?? 0)
}

const ACTUATORS: Record<string, Actuator> = {
  TransferContract({ draft, owner, tx, time, isContract, outcome }) {
    const amount = number(tx, 'amount')
    const address = text(tx, 'to_address')
    if (!/^41[0-9a-f]{40}$/.test(address)) throw invalid('Invalid toAddress!')
    if (address === owner.address) throw invalid('Cannot transfer TRX to yourself.')
    if (amount <= 0n) throw invalid('Amount must be greater than 0.')
    if (isContract(address)) throw invalid('Cannot transfer TRX to a smartContract.')
    let to = draft.account(address)
    const fee = to ? 0n : BigInt(PARAMETERS.getCreateNewAccountFeeInSystemContract)
    if (owner.balance < amount + fee)
      throw invalid('Validate TransferContract error, balance is not sufficient.')
    to ??= draft.create(address, time)
    owner.balance -= amount + fee
    to.balance += amount
    outcome.fee += fee
  },

  FreezeBalanceV2Contract({ draft, owner, tx }) {
    const amount = number(tx, 'frozen_balance')
    const resource = resourceOf(tx)
    if (amount < SUN) throw invalid('frozenBalance must be greater than or equal to 1 TRX')
    if (amount > owner.balance)
      throw invalid('frozenBalance must be less than or equal to accountBalance')
    owner.balance -= amount
    owner.frozen[resource] += amount
    draft.staked[resource] += amount
  },

  UnfreezeBalanceV2Contract({ draft, owner, tx, time, outcome }) {
    const amount = number(tx, 'unfreeze_balance')
    const resource = resourceOf(tx)
    if (owner.frozen[resource] === 0n)
      throw invalid(`no frozenBalance(${RESOURCE_NAMES[resource]})`)
    if (amount <= 0n || amount > owner.frozen[resource])
      throw invalid(`Invalid unfreeze_balance, [${amount}] is error`)
    if (unfreezesLeft(owner, time) <= 0)
      throw invalid('Invalid unfreeze operation, unfreezing times is over limit')
    outcome.unfrozen = amount
    outcome.withdrawn = release(owner, time)
    owner.frozen[resource] -= amount
    draft.staked[resource] -= amount
    owner.unfreezing.push({
      resource,
      amount,
      expires: time + PARAMETERS.getUnfreezeDelayDays * DAY_MS,
    })
  },

  WithdrawExpireUnfreezeContract({ owner, time, outcome }) {
    if (matured(owner, time) === 0n) throw invalid('no unFreeze balance to withdraw ')
    outcome.withdrawn = release(owner, time)
  },

  DelegateResourceContract({ draft, owner, tx, time, isContract }) {
    const amount = number(tx, 'balance')
    const resource = resourceOf(tx)
    const receiver = receiverOf(draft, owner, tx, isContract)
    if (tx.value['lock'] === true)
      throw invalid('a locked delegation is not supported by this chain')
    if (amount < SUN) throw invalid('delegateBalance must be greater than or equal to 1 TRX')
    if (amount > delegatable(draft, owner, resource, slotOf(time))) {
      throw invalid(
        `delegateBalance must be less than or equal to available Freeze${resource === ENERGY ? 'Energy' : 'Bandwidth'}V2 balance`,
      )
    }
    owner.frozen[resource] -= amount
    owner.lent[resource] += amount
    receiver.borrowed[resource] += amount
    draft.setDelegation(owner.address, receiver.address, resource, amount)
  },

  UnDelegateResourceContract({ draft, owner, tx, time, isContract }) {
    const amount = number(tx, 'balance')
    const resource = resourceOf(tx)
    const receiver = receiverOf(draft, owner, tx, isContract)
    const lent = draft.delegation(owner.address + receiver.address)?.[resource] ?? 0n
    if (amount <= 0n) throw invalid('unDelegateBalance must be more than 0 TRX')
    if (lent === 0n) throw invalid('delegated Resource does not exist')
    if (amount > lent) {
      throw invalid(
        `insufficient delegatedFrozenBalance(${RESOURCE_NAMES[resource]}), request=${amount}, unlock_balance=${lent}`,
      )
    }
    // Use that depended on the stake is removed with it.
    const slot = slotOf(time)
    const whole = receiver.frozen[resource] + receiver.borrowed[resource]
    const used = usedOf(receiver.usage[resource], slot)
    const most = ((amount / SUN) * TOTAL_LIMIT[resource]) / weightOf(draft, resource)
    const share = (used * amount) / whole
    const moved = share < most ? share : most
    spend(receiver.usage[resource], -moved, slot)
    spend(owner.usage[resource], moved, slot)
    receiver.borrowed[resource] -= amount
    owner.lent[resource] -= amount
    owner.frozen[resource] += amount
    draft.setDelegation(owner.address, receiver.address, resource, -amount)
  },
}

function receiverOf(
  draft: Draft,
  owner: Account,
  tx: Tx,
  isContract: (address: string) => boolean,
): Account {
  const address = text(tx, 'receiver_address')
  if (!/^41[0-9a-f]{40}$/.test(address)) throw invalid('Invalid receiverAddress')
  if (address === owner.address)
    throw invalid('receiverAddress must not be the same as ownerAddress')
  if (isContract(address)) throw invalid('Do not allow delegate resources to contract addresses')
  const receiver = draft.account(address)
  if (!receiver) throw invalid(`Account[${address}] not exists`)
  return receiver
}
