import {
  assemble,
  decode,
  type DecodedTransaction,
  type Network,
  type SignedTransaction,
  type UnsignedTransaction,
  type Registry,
} from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import type { Recorded } from './history.ts'

interface Services {
  database: Database
  registry: Registry
  networks: Networks
  keys: WorkspaceKeys
}

/**
 * Thrown when a record is not adopted; the message is for the operator. `matters`: the transaction
 * may have moved funds.
 */
export class NotAdopted extends Error {
  readonly matters: boolean
  constructor(message: string, matters = true) {
    super(message)
    this.name = 'NotAdopted'
    this.matters = matters
  }
}

/** A recorded transaction that was decoded and whose signatures were verified here. */
export interface Opened {
  recorded: Recorded
  workspaceId: string
  network: Network
  unsigned: UnsignedTransaction
  decoded: DecodedTransaction
  signed: SignedTransaction
  /** First element of the paths of its inputs; 0 is the gas tank. */
  subAccount: number
  coins: { txid: string; vout: number; value: bigint; pathIndex: number }[]
}

/**
 * Decodes and verifies a recorded transaction. Only its bytes and paths are used: its effect is
 * decoded with the workspace's certified key, and the signatures must be valid for this key and
 * these bytes.
 * @param raws signed transactions that were opened before, by hash, because the chain may not have
 *   them
 * @throws NotAdopted
 */
export async function open(
  services: Services,
  recorded: Recorded,
  raws: ReadonlyMap<string, string>,
): Promise<Opened> {
  const network = services.registry.network(recorded.unsigned.network)
  if (!network)
    throw new NotAdopted(`the network ${recorded.unsigned.network} is not in the registry`)
  if (!services.networks.has(network.code))
    throw new NotAdopted(`${network.code} has no endpoint configured`)
  if (recorded.disputed) throw new NotAdopted('the signer nodes reported different data for it')
  const workspace = await services.database.one<{ id: string }>(
    'select id from workspaces where name = $1',
    [recorded.workspace],
  )
  if (!workspace)
    throw new NotAdopted(
      `the workspace ${recorded.workspace} does not exist, and no two signer nodes have an API user of it`,
    )
  const [subAccount, ...others] = new Set(recorded.unsigned.inputs.map(({ path }) => path[0]))
  const foreign = recorded.unsigned.inputs.some(
    ({ path }) => path.length !== 3 || path[1] !== network.chain_index,
  )
  if (subAccount === undefined || others.length > 0 || foreign)
    throw new NotAdopted('its paths do not belong to one wallet')
  const key = await services.keys.get(workspace.id, network.curve)
  const unsigned = await withPrevious(services, network, recorded.unsigned, raws)
  let decoded: DecodedTransaction
  try {
    decoded = decode(services.registry, unsigned, key.at)
  } catch (error) {
    throw new NotAdopted(`it cannot be decoded: ${reasonOf(error)}`)
  }
  const signed = assembled(services, recorded, unsigned, key.at)
  const spent = services.networks.get(network.code).coins?.of(unsigned) ?? []
  const coins = spent.map(({ txid, vout, value }, at) => ({
    txid,
    vout,
    value: value ?? 0n,
    pathIndex: unsigned.inputs[at]?.path[2] as number,
  }))
  return {
    recorded,
    workspaceId: workspace.id,
    network,
    unsigned,
    decoded,
    signed,
    subAccount,
    coins,
  }
}

function assembled(
  services: Services,
  recorded: Recorded,
  unsigned: UnsignedTransaction,
  at: Parameters<typeof assemble>[3],
): SignedTransaction {
  let problem = ''
  for (const signatures of recorded.signatures) {
    try {
      return assemble(
        services.registry,
        unsigned,
        signatures.map((each) => ({
          signature: new Uint8Array(Buffer.from(each.signature, 'hex')),
          recoveryId: each.recovery_id,
        })),
        at,
      )
    } catch (error) {
      problem = reasonOf(error)
    }
  }
  if (problem !== '') throw new NotAdopted(`its signatures do not verify: ${problem}`, false)
  throw new NotAdopted('its signing began, but no signer node has its signatures', false)
}

/**
 * Adds the transactions that created the inputs, which a record omits; they are read from the
 * chain.
 */
async function withPrevious(
  services: Services,
  network: Network,
  unsigned: UnsignedTransaction,
  raws: ReadonlyMap<string, string>,
): Promise<UnsignedTransaction> {
  const chain = services.networks.get(network.code).coins
  if (!chain) return unsigned
  let coins: { txid: string }[]
  try {
    coins = chain.of(unsigned)
  } catch (error) {
    throw new NotAdopted(`it cannot be decoded: ${reasonOf(error)}`)
  }
  const matches = new Map<string, string>()
  for (const { txid } of coins)
    if (!matches.has(txid)) matches.set(txid, await chain.previous(txid, raws.get(txid)))
  return {
    ...unsigned,
    inputs: unsigned.inputs.map((input, at) => ({
      ...input,
      previous: matches.get(coins[at]?.txid as string) as string,
    })),
  }
}
