import { concatBytes } from '@noble/hashes/utils.js'
import { base58 } from '@scure/base'
import { assertShape } from '../assertions.ts'
import { ChainError } from '../types.ts'
import {
  ASSOCIATED_TOKEN_PROGRAM,
  COMPUTE_BUDGET_PROGRAM,
  keyOf,
  SYSTEM_PROGRAM,
  TOKEN_2022_PROGRAM,
  TOKEN_PROGRAM,
  tokenAccountOf,
} from './address.ts'

/** Content of a message of an allowed shape. The message's bytes follow from these fields alone. */
export interface Payment {
  /** The account that sends the coins. It signs, and it pays the fee except in a sweep. */
  from: string
  /** The receiving wallet; for tokens the owner, whose associated token account is paid. */
  to: string
  amount: bigint
  token: { mint: string; decimals: number } | null
  /**
   * The receiver of a token also signs, and pays the fee. Deposit addresses, which have no SOL, are
   * emptied this way.
   */
  sweep: boolean
  blockhash: string
  /** Maximum compute units; null if not specified. */
  units: number | null
  /** Price in millionths of a lamport per compute unit; null if not specified. */
  unitPrice: bigint | null
}

const VERSION_0 = 0x80
const MESSAGE_BYTES_MAX = 1232 - 65
const UNIT_LIMIT = 2
const UNIT_PRICE = 3
const TRANSFER = 2
const ADVANCE_NONCE = 4
const TRANSFER_CHECKED = 12
const CREATE_IDEMPOTENT = 1

interface Instruction {
  program: string
  accounts: string[]
  data: Uint8Array
}

function number(bytes: number, value: bigint): Uint8Array {
  const out = new Uint8Array(bytes)
  for (let at = 0; at < bytes; at++) out[at] = Number((value >> BigInt(8 * at)) & 0xffn)
  return out
}

const readNumber = (bytes: Uint8Array): bigint =>
  bytes.reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n)

/** Encodes the message: version 0, without lookup tables, accounts in a fixed order. */
export function encode(payment: Payment): Uint8Array {
  const { from, to, amount, token, sweep } = payment
  const payer = sweep ? to : from
  const signers = sweep ? [to, from] : [from]
  const writable: string[] = []
  const readonly: string[] = []
  const instructions: Instruction[] = []
  if (payment.units !== null) {
    instructions.push({
      program: COMPUTE_BUDGET_PROGRAM,
      accounts: [],
      data: concatBytes(Uint8Array.of(UNIT_LIMIT), number(4, BigInt(payment.units))),
    })
  }
  if (payment.unitPrice !== null) {
    instructions.push({
      program: COMPUTE_BUDGET_PROGRAM,
      accounts: [],
      data: concatBytes(Uint8Array.of(UNIT_PRICE), number(8, payment.unitPrice)),
    })
  }
  if (token) {
    const [source, destination] = [tokenAccountOf(from, token.mint), tokenAccountOf(to, token.mint)]
    writable.push(source, destination)
    if (!sweep) readonly.push(to)
    readonly.push(token.mint, SYSTEM_PROGRAM, TOKEN_PROGRAM, ASSOCIATED_TOKEN_PROGRAM)
    instructions.push(
      {
        program: ASSOCIATED_TOKEN_PROGRAM,
        accounts: [payer, destination, to, token.mint, SYSTEM_PROGRAM, TOKEN_PROGRAM],
        data: Uint8Array.of(CREATE_IDEMPOTENT),
      },
      {
        program: TOKEN_PROGRAM,
        accounts: [source, token.mint, destination, from],
        data: concatBytes(
          Uint8Array.of(TRANSFER_CHECKED),
          number(8, amount),
          Uint8Array.of(token.decimals),
        ),
      },
    )
  } else {
    writable.push(to)
    readonly.push(SYSTEM_PROGRAM)
    instructions.push({
      program: SYSTEM_PROGRAM,
      accounts: [from, to],
      data: concatBytes(number(4, BigInt(TRANSFER)), number(8, amount)),
    })
  }
  if (payment.units !== null || payment.unitPrice !== null) readonly.push(COMPUTE_BUDGET_PROGRAM)
  const keys = [...signers, ...writable, ...readonly]
  // Every length here is below 128, so it is encoded as one byte.
  return concatBytes(
    Uint8Array.of(VERSION_0, signers.length, signers.length - 1, readonly.length, keys.length),
    ...keys.map(keyOf),
    keyOf(payment.blockhash),
    Uint8Array.of(instructions.length),
    ...instructions.flatMap(({ program, accounts, data }) => [
      Uint8Array.of(
        keys.indexOf(program),
        accounts.length,
        ...accounts.map((account) => keys.indexOf(account)),
        data.length,
      ),
      data,
    ]),
    Uint8Array.of(0),
  )
}

class Reader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  take(length: number): Uint8Array {
    if (this.#at + length > this.#bytes.length)
      throw new ChainError('TRANSACTION', 'ends too early')
    return this.#bytes.subarray(this.#at, (this.#at += length))
  }

  byte(): number {
    return this.take(1)[0] as number
  }

  length(): number {
    const length = this.byte()
    // An allowed shape has no list of 128 or more entries.
    assertShape(length < 0x80, 'is larger than the largest allowed message')
    return length
  }

  get done(): boolean {
    return this.#at === this.#bytes.length
  }
}

/**
 * Reads a message of an allowed shape: an optional compute budget, then one System transfer, or the
 * creation of the destination's associated token account (which contains its owner) and one
 * TransferChecked.
 * @throws ChainError `TRANSACTION`, `SHAPE`; `ENCODING` if it does not encode to the same bytes
 */
export function parse(bytes: Uint8Array): Payment {
  if (bytes.length > MESSAGE_BYTES_MAX) throw new ChainError('TRANSACTION', 'is too large')
  const reader = new Reader(bytes)
  assertShape(reader.byte() === VERSION_0, 'only messages of version 0 are allowed')
  const signatures = reader.byte()
  assertShape(signatures === 1 || signatures === 2, 'one signature is allowed, and two for a sweep')
  reader.take(2)
  const keys = Array.from({ length: reader.length() }, () => base58.encode(reader.take(32)))
  const sweep = signatures === 2
  const from = keys[signatures - 1]
  assertShape(from !== undefined, 'has no accounts')
  const blockhash = base58.encode(reader.take(32))
  const at = (index: number): string => {
    const key = keys[index]
    assertShape(key !== undefined, 'an account beyond the list (of a lookup table) is not allowed')
    return key
  }
  const instructions = Array.from({ length: reader.length() }, (): Instruction => {
    const program = at(reader.byte())
    const accounts = Array.from({ length: reader.length() }, () => at(reader.byte()))
    return { program, accounts, data: reader.take(reader.length()) }
  })
  assertShape(reader.length() === 0, 'lookup tables are not allowed')
  if (!reader.done) throw new ChainError('TRANSACTION', 'has bytes after its end')

  let units: number | null = null
  let unitPrice: bigint | null = null
  while (instructions[0]?.program === COMPUTE_BUDGET_PROGRAM) {
    const { data } = instructions.shift() as Instruction
    if (data[0] === UNIT_LIMIT && data.length === 5) {
      assertShape(
        units === null && unitPrice === null,
        'sets the limit of compute units twice, or after their price',
      )
      units = Number(readNumber(data.subarray(1)))
    } else {
      assertShape(
        data[0] === UNIT_PRICE && data.length === 9,
        'this compute budget instruction is not allowed',
      )
      assertShape(unitPrice === null, 'sets the price of compute units twice')
      unitPrice = readNumber(data.subarray(1))
    }
  }
  assertShape(
    unitPrice === null || units !== null,
    'sets a price of compute units without a limit of compute units',
  )
  const payment =
    instructions[0]?.program === SYSTEM_PROGRAM ? native(instructions) : tokens(instructions)
  const parsed: Payment = { from, ...payment, sweep, blockhash, units, unitPrice }
  assertShape(
    !sweep || (parsed.token !== null && parsed.to === keys[0]),
    'a second signature is allowed only if the receiver of tokens pays the fee',
  )
  assertShape(parsed.amount > 0n, 'makes no payment')
  assertShape(parsed.to !== from, 'pays the sender')
  const again = encode(parsed)
  if (again.length !== bytes.length || again.some((byte, index) => byte !== bytes[index])) {
    throw new ChainError('ENCODING', 'does not re-encode to the same bytes')
  }
  return parsed
}

type Moved = Pick<Payment, 'to' | 'amount' | 'token'>

function native([transfer, more]: Instruction[]): Moved {
  const { accounts, data } = transfer as Instruction
  const kind = data.length >= 4 ? Number(readNumber(data.subarray(0, 4))) : -1
  assertShape(
    kind !== ADVANCE_NONCE,
    'a durable nonce is not allowed: the transaction would never expire',
  )
  assertShape(
    kind === TRANSFER && data.length === 12 && accounts.length === 2,
    'the only allowed instruction of the System program is a transfer',
  )
  assertShape(more === undefined, 'exactly one transfer is allowed')
  return { to: accounts[1] as string, amount: readNumber(data.subarray(4)), token: null }
}

function tokens([create, transfer, more]: Instruction[]): Moved {
  assertShape(create !== undefined, 'has no receiver')
  assertShape(
    ![create, transfer].some(
      (each) => each?.program === TOKEN_2022_PROGRAM || each?.accounts.includes(TOKEN_2022_PROGRAM),
    ),
    'Token-2022 is not supported: its tokens may charge fees or be withheld',
  )
  assertShape(
    create.program === ASSOCIATED_TOKEN_PROGRAM &&
      create.data.length === 1 &&
      create.data[0] === CREATE_IDEMPOTENT &&
      create.accounts.length === 6,
    'a token transfer must start with CreateIdempotent of the destination’s token account, which contains its owner',
  )
  assertShape(
    transfer !== undefined &&
      transfer.program === TOKEN_PROGRAM &&
      transfer.data[0] === TRANSFER_CHECKED &&
      transfer.data.length === 10 &&
      transfer.accounts.length === 4,
    'the only allowed instruction of the Token program is TransferChecked',
  )
  assertShape(more === undefined, 'exactly one transfer is allowed')
  const [, , to, mint] = create.accounts as [string, string, string, string]
  assertShape(
    create.accounts[1] === tokenAccountOf(to, mint) && transfer.accounts[2] === create.accounts[1],
    'the paid token account is not the associated token account of its owner',
  )
  assertShape(transfer.accounts[1] === mint, 'creates an account of another mint than it pays')
  return {
    to,
    amount: readNumber(transfer.data.subarray(1, 9)),
    token: { mint, decimals: transfer.data[9] as number },
  }
}
