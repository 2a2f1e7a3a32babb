import type { Faults } from '../faults.ts'
import { addressObject, addressTotal, addressTransactions } from './addresses.ts'
import {
  NotTaken,
  SLOT_MS,
  SLOT_ZERO_MS,
  type Block,
  type CardanoChain,
  type Place,
} from './chain.ts'
import { FAUCET, genesis, GENESIS_LOVELACE } from './faucet.ts'
import type { Output } from './transaction.ts'

const NETWORK_MAGIC = 42
const EPOCH_SLOTS = 432_000
const COUNT_MAX = 100

type Answer = { status: number; body: string }
type Query = Record<string, string>

const json = (status: number, body: unknown): Answer => ({ status, body: JSON.stringify(body) })
const ERRORS = { 400: 'Bad Request', 404: 'Not Found', 425: 'Mempool Full' } as const
const error = (status: keyof typeof ERRORS, message: string): Answer =>
  json(status, { status_code: status, error: ERRORS[status], message })
const missing = (): Answer => error(404, 'The requested component has not been found.')

const FIRST = genesis().outpoint
const firstOutput = (hash: string, index: number): Output => ({
  index,
  address: hash === FIRST.hash ? FAUCET : '',
  coin: hash === FIRST.hash ? GENESIS_LOVELACE : 0n,
  tokens: [],
  scriptHash: null,
  dataHash: null,
  inlineDatum: null,
})

/**
 * Blockfrost's API, limited to the requests that wallets send.
 * @param path below the API's root, without a leading slash
 * @param body the query of a GET as JSON; the bytes of a POST, one character each
 * @returns the response; undefined closes the connection without one
 */
export function cardanoRpc(
  chain: CardanoChain,
  faults: Faults,
  path: string,
  body: string,
): Answer | undefined {
  const [what = '', which = '', more = '', most = ''] = path.split('/')
  if (path === 'tx/submit') return submit(chain, faults, body)
  let query: Query
  try {
    query = JSON.parse(body) as Query
  } catch {
    return error(400, 'Invalid path. Please check https://docs.blockfrost.io/')
  }
  switch (what) {
    case '':
      return json(200, { url: 'https://blockfrost.io/', version: 'local' })
    case 'health':
      return json(
        200,
        which === 'clock' ? { server_time: chain.timing.now() } : { is_healthy: true },
      )
    case 'genesis':
      return json(200, genesisOf())
    case 'blocks':
      return blocks(chain, which, more, most, query)
    case 'txs':
      return transactions(chain, which, more)
    case 'mempool':
      return chain.waiting.some(({ hash }) => hash === which)
        ? json(200, { tx: { hash: which } })
        : missing()
    case 'addresses':
      return addresses(chain, which, more, query)
    case 'epochs':
      return which === 'latest' && more === 'parameters' ? json(200, PARAMETERS(chain)) : missing()
    default:
      return error(400, 'Invalid path. Please check https://docs.blockfrost.io/')
  }
}

function submit(chain: CardanoChain, faults: Faults, body: string): Answer | undefined {
  if (faults.mode === 'reject')
    return error(425, 'Mempool is full, please try resubmitting again later.')
  try {
    const hash = chain.submit(Buffer.from(body, 'latin1').toString('hex'))
    return faults.mode === 'drop-answer' ? undefined : json(200, hash)
  } catch (thrown) {
    if (thrown instanceof NotTaken) return error(400, `transaction submit error ${thrown.message}`)
    throw thrown
  }
}

function genesisOf(): unknown {
  return {
    active_slots_coefficient: 0.05,
    update_quorum: 5,
    max_lovelace_supply: '45000000000000000',
    network_magic: NETWORK_MAGIC,
    epoch_length: EPOCH_SLOTS,
    system_start: SLOT_ZERO_MS / SLOT_MS,
    slots_per_kes_period: 129_600,
    slot_length: 1,
    max_kes_evolutions: 62,
    security_param: 2160,
  }
}

/** Protocol parameters of the emulator's ledger, under Blockfrost's names. */
const PARAMETERS = (chain: CardanoChain): unknown => ({
  epoch: Math.floor(chain.head.slot / EPOCH_SLOTS),
  min_fee_a: 44,
  min_fee_b: 155_381,
  max_block_size: 90_112,
  max_tx_size: 16_384,
  max_block_header_size: 1100,
  key_deposit: '2000000',
  pool_deposit: '500000000',
  protocol_major_ver: 10,
  protocol_minor_ver: 0,
  min_utxo: '4310',
  max_val_size: '5000',
  coins_per_utxo_size: '4310',
  coins_per_utxo_word: '4310',
  collateral_percent: 150,
  max_collateral_inputs: 3,
  min_fee_ref_script_cost_per_byte: 15,
})

function page<T>(all: T[], { count = '100', page: number = '1', order = 'asc' }: Query): T[] {
  const size = Math.min(COUNT_MAX, Math.max(1, Number(count) || COUNT_MAX))
  const start = (Math.max(1, Number(number) || 1) - 1) * size
  return (order === 'desc' ? all.toReversed() : all).slice(start, start + size)
}

function blockOf(chain: CardanoChain, which: string): Block | undefined {
  if (which === 'latest') return chain.head
  return /^\d+$/.test(which)
    ? chain.blocks[Number(which)]
    : chain.blocks.find(({ hash }) => hash === which)
}

function blocks(
  chain: CardanoChain,
  which: string,
  more: string,
  most: string,
  query: Query,
): Answer {
  const block = blockOf(chain, which)
  if (!block) return missing()
  const { transactions } = block
  if (more === 'txs' && most === '')
    return json(
      200,
      page(
        transactions.map(({ hash }) => hash),
        query,
      ),
    )
  if (more === 'txs' && most === 'cbor')
    return json(
      200,
      page(
        transactions.map(({ hash, raw }) => ({ tx_hash: hash, cbor: raw })),
        query,
      ),
    )
  if (more !== '') return error(400, 'Invalid path. Please check https://docs.blockfrost.io/')
  return json(200, {
    time: SLOT_ZERO_MS / SLOT_MS + block.slot,
    height: block.height,
    hash: block.hash,
    slot: block.slot,
    epoch: Math.floor(block.slot / EPOCH_SLOTS),
    epoch_slot: block.slot % EPOCH_SLOTS,
    slot_leader: 'local',
    size: transactions.reduce((sum, { raw }) => sum + raw.length / 2, 0),
    tx_count: transactions.length,
    output:
      transactions.length === 0
        ? null
        : sumOf(transactions.flatMap(({ outputs }) => outputs)).toString(),
    fees:
      transactions.length === 0
        ? null
        : transactions.reduce((sum, { fee }) => sum + fee, 0n).toString(),
    block_vrf: null,
    op_cert: null,
    op_cert_counter: null,
    previous_block: block.height === 0 ? null : block.parent,
    next_block: chain.blocks[block.height + 1]?.hash ?? null,
    confirmations: chain.head.height - block.height,
  })
}

const sumOf = (outputs: Output[]): bigint => outputs.reduce((sum, { coin }) => sum + coin, 0n)
const amountOf = ({ coin, tokens }: Output): unknown => [
  { unit: 'lovelace', quantity: coin.toString() },
  ...tokens,
]
const shared = (output: Output) => ({
  address: output.address,
  amount: amountOf(output),
  output_index: output.index,
  data_hash: output.dataHash,
  inline_datum: output.inlineDatum,
  reference_script_hash: output.scriptHash,
})

function transactions(chain: CardanoChain, which: string, more: string): Answer {
  const place = chain.places.get(which)
  if (!place) return missing()
  const { transaction, block, order } = place
  if (more === 'cbor') return json(200, { cbor: transaction.raw })
  if (more === 'utxos') return json(200, utxosOf(chain, place))
  if (more !== '') return error(400, 'Invalid path. Please check https://docs.blockfrost.io/')
  return json(200, {
    hash: which,
    block: block.hash,
    block_height: block.height,
    block_time: SLOT_ZERO_MS / SLOT_MS + block.slot,
    slot: block.slot,
    index: order,
    output_amount: [{ unit: 'lovelace', quantity: sumOf(transaction.outputs).toString() }],
    fees: transaction.fee.toString(),
    deposit: '0',
    size: transaction.raw.length / 2,
    invalid_before: null,
    invalid_hereafter: transaction.ttl,
    utxo_count: transaction.inputs.length + transaction.outputs.length,
    valid_contract: true,
  })
}

function utxosOf(chain: CardanoChain, { transaction }: Place): unknown {
  return {
    hash: transaction.hash,
    inputs: transaction.inputs.map(({ hash, index }) => {
      // The initial output is in no block and belongs to the faucet.
      const output = chain.places.get(hash)?.transaction.outputs[index] ?? firstOutput(hash, index)
      return { ...shared(output), tx_hash: hash, collateral: false, reference: false }
    }),
    outputs: transaction.outputs.map((output) => ({
      ...shared(output),
      collateral: false,
      consumed_by_tx: chain.spenders.get(`${transaction.hash}#${output.index}`) ?? null,
    })),
  }
}

function addresses(chain: CardanoChain, address: string, more: string, query: Query): Answer {
  const jsonOrMissing = (value: unknown): Answer => (value === null ? missing() : json(200, value))
  switch (more) {
    case '':
      return jsonOrMissing(addressObject(chain, address))
    case 'total':
      return jsonOrMissing(addressTotal(chain, address))
    case 'transactions': {
      const all = addressTransactions(chain, address, query)
      return jsonOrMissing(all && page(all, query))
    }
    case 'utxos':
      return json(
        200,
        page(
          chain.unspent(address).map(({ index, place }) => ({
            ...shared(place.transaction.outputs[index] as Output),
            tx_hash: place.transaction.hash,
            tx_index: index,
            block: place.block.hash,
          })),
          query,
        ),
      )
    default:
      return error(400, 'Invalid path. Please check https://docs.blockfrost.io/')
  }
}
