// Solana: messages, addresses and refusals, verified with @solana/kit.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { ed25519 } from '@noble/curves/ed25519.js'
import { base58 } from '@scure/base'
import {
  getSetComputeUnitLimitInstruction,
  getSetComputeUnitPriceInstruction,
} from '@solana-program/compute-budget'
import {
  getAdvanceNonceAccountInstruction,
  getTransferSolInstruction,
} from '@solana-program/system'
import {
  findAssociatedTokenPda,
  getCreateAssociatedTokenIdempotentInstruction,
  getTransferCheckedInstruction,
  TOKEN_PROGRAM_ADDRESS,
} from '@solana-program/token'
import {
  address,
  appendTransactionMessageInstructions,
  blockhash,
  compileTransaction,
  createNoopSigner,
  createTransactionMessage,
  decompileTransactionMessage,
  getCompiledTransactionMessageDecoder,
  getTransactionDecoder,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
  verifySignature,
  getPublicKeyFromAddress,
  type Address,
  type Instruction,
} from '@solana/kit'
import * as fc from '../../../../testing/property.ts'
import {
  familyOf,
  readRegistryFile,
  solana,
  type Asset,
  type Network,
  type PublicKeyAt,
  type UnsignedTransaction,
} from '../index.ts'
import { refuses } from '../../testing/support.ts'

const file = readRegistryFile()
const {
  ready: _,
  mainnet,
  local: __,
  ...line
} = file.networks.find(({ code }) => code === 'SOL') as (typeof file.networks)[number]
const SOL: Network = { ...line, ...mainnet, mode: 'mainnet' }
const ASSETS: Asset[] = file.assets
  .filter(({ network }) => network === 'SOL')
  .map((each) => ({
    asset_name: each.asset_name,
    name: each.name,
    ticker: each.ticker,
    blockchain: 'Solana',
    network: 'SOL',
    family: 'solana',
    decimals: each.decimals,
    type: each.type,
    contract_address: each.contract_address?.mainnet ?? null,
    fee_asset: 'SOL',
    takes_tag: false,
    requires_tag: false,
    min_withdrawal: each.min_withdrawal,
    issuer: null,
    bridged: false,
    status: 'active',
    status_since: null,
    status_reason: null,
  }))
const [NATIVE, USDT, USDC] = ASSETS as [Asset, Asset, Asset]
const PATH = [1, 501, 0]
const secret = createHash('sha256').update('tests of solana').digest()
const publicKey = ed25519.getPublicKey(secret)
const FROM = base58.encode(publicKey) as Address
const TO = '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM' as Address
const HASH = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d'
const at: PublicKeyAt = () => publicKey
const { decode, signing, assemble, validate, exclusive } = familyOf(SOL)
const of = (unsigned: UnsignedTransaction) => decode(SOL, unsigned, ASSETS, at)
const build = (asset: Asset, amount = 1_500_000n, unitPrice = 1000n) =>
  solana.buildTransfer(SOL, {
    asset,
    to: TO,
    amount,
    blockhash: HASH,
    unitPrice,
    publicKey,
    path: PATH,
  })
const payer = createNoopSigner(FROM)
const mint = (asset: Asset) => address(asset.contract_address as string)
const ataOf = async (owner: Address, asset: Asset) =>
  (
    await findAssociatedTokenPda({ owner, mint: mint(asset), tokenProgram: TOKEN_PROGRAM_ADDRESS })
  )[0]

/** Returns the message that kit builds from instructions. */
function kit(instructions: Instruction[], version: 0 | 'legacy' = 0): UnsignedTransaction {
  const message = pipe(
    createTransactionMessage({ version: version as 0 }),
    (m) => setTransactionMessageFeePayer(FROM, m),
    (m) =>
      setTransactionMessageLifetimeUsingBlockhash(
        { blockhash: blockhash(HASH), lastValidBlockHeight: 1n },
        m,
      ),
    (m) => appendTransactionMessageInstructions(instructions, m),
  )
  return {
    network: 'SOL',
    bytes: Buffer.from(compileTransaction(message).messageBytes as unknown as Uint8Array).toString(
      'hex',
    ),
    inputs: [{ path: PATH }],
  }
}

/** Returns our bytes as decoded by kit: instructions with accounts, roles and data. */
function readByKit(unsigned: UnsignedTransaction) {
  const compiled = getCompiledTransactionMessageDecoder().decode(Buffer.from(unsigned.bytes, 'hex'))
  const { instructions, feePayer } = decompileTransactionMessage(compiled as never)
  return {
    feePayer: feePayer.address,
    instructions: instructions.map(({ programAddress, accounts, data }) => ({
      programAddress,
      accounts: (accounts ?? []).map((each) => ({ address: each.address, role: each.role })),
      data: Buffer.from(data ?? []).toString('hex'),
    })),
  }
}
const plainly = (instructions: Instruction[]) => readByKit(kit(instructions)).instructions

async function tokenTransfer(asset: Asset, amount = 1_500_000n): Promise<Instruction[]> {
  const [source, destination] = [await ataOf(FROM, asset), await ataOf(TO, asset)]
  return [
    getCreateAssociatedTokenIdempotentInstruction({
      payer,
      ata: destination,
      owner: TO,
      mint: mint(asset),
    }),
    getTransferCheckedInstruction({
      source,
      mint: mint(asset),
      destination,
      authority: payer,
      amount,
      decimals: asset.decimals,
    }),
  ]
}
const budget = (units: number) => [
  getSetComputeUnitLimitInstruction({ units }),
  getSetComputeUnitPriceInstruction({ microLamports: 1000n }),
]

test('kit decodes a transfer of SOL and builds the same transaction', () => {
  const unsigned = build(NATIVE)
  assert.deepEqual(readByKit(unsigned), {
    feePayer: FROM,
    instructions: plainly([
      ...budget(1000),
      getTransferSolInstruction({ source: payer, destination: TO, amount: 1_500_000n }),
    ]),
  })
  const decoded = of(unsigned)
  assert.deepEqual(decoded.payments, [{ address: TO, amount: 1_500_000n, tag: null }])
  assert.equal(decoded.asset, 'SOL')
  assert.equal(decoded.fee_max, 5001n)
  assert.deepEqual(decoded.from, [FROM])
  assert.equal(exclusive(decoded, decoded), false)
})

test('kit decodes a token transfer with its owner and builds the same transaction', async () => {
  for (const asset of [USDT, USDC]) {
    const unsigned = build(asset)
    assert.deepEqual(readByKit(unsigned), {
      feePayer: FROM,
      instructions: plainly([...budget(90_000), ...(await tokenTransfer(asset))]),
    })
    const decoded = of(unsigned)
    assert.deepEqual(
      [decoded.asset, decoded.payments],
      [asset.asset_name, [{ address: TO, amount: 1_500_000n, tag: null }]],
    )
    assert.equal(decoded.fee_max, 5000n + 90n + 2_039_280n)
  }
})

test('associated token accounts equal those of kit', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 32, maxLength: 32 }), async (seed) => {
      const owner = base58.encode(ed25519.getPublicKey(seed)) as Address
      assert.equal(
        solana.tokenAccountOf(owner, USDC.contract_address as string),
        await ataOf(owner, USDC),
      )
    }),
    { numRuns: 50 },
  )
})

test('the whole message is signed, the id is the signature, and kit accepts the bytes', async () => {
  const unsigned = build(USDC)
  const [item] = signing(SOL, unsigned, at)
  assert.equal(Buffer.from(item!.message).toString('hex'), unsigned.bytes)
  const signature = ed25519.sign(item!.message, secret)
  const signed = assemble(SOL, unsigned, [{ signature, recoveryId: null }], at)
  assert.equal(signed.hash, base58.encode(signature))
  const transaction = getTransactionDecoder().decode(Buffer.from(signed.raw, 'hex'))
  assert.ok(
    await verifySignature(
      await getPublicKeyFromAddress(FROM),
      transaction.signatures[FROM]!,
      transaction.messageBytes,
    ),
  )
  refuses(
    () => assemble(SOL, unsigned, [{ signature: Buffer.alloc(64), recoveryId: null }], at),
    'SIGNATURE',
  )
  refuses(() => assemble(SOL, unsigned, [{ signature, recoveryId: 0 }], at), 'SIGNATURE')
})

test('the receiver of a token sweep pays the fee and signs first', async () => {
  const omnibus = ed25519.keygen(createHash('sha256').update('omnibus').digest())
  const owner = base58.encode(omnibus.publicKey) as Address
  const unsigned = solana.buildTokenSweep(SOL, {
    asset: USDC,
    amount: 7n,
    blockhash: HASH,
    units: 90_000,
    unitPrice: 1000n,
    from: { publicKey, path: [1, 501, 3] },
    omnibus: { publicKey: omnibus.publicKey, path: PATH },
  })
  const keys: PublicKeyAt = (path) => (path[2] === 0 ? omnibus.publicKey : publicKey)
  const decoded = decode(SOL, unsigned, ASSETS, keys)
  assert.deepEqual(
    [decoded.from, decoded.payments, decoded.fee_max],
    [[owner, FROM], [{ address: owner, amount: 7n, tag: null }], 10_000n + 90n + 2_039_280n],
  )
  const { feePayer, instructions } = readByKit(unsigned)
  assert.equal(feePayer, owner)
  const [, , create, checked] = instructions
  assert.deepEqual(
    create!.accounts.map((each) => each.address),
    [
      owner,
      await ataOf(owner, USDC),
      owner,
      USDC.contract_address,
      '11111111111111111111111111111111',
      TOKEN_PROGRAM_ADDRESS,
    ],
  )
  assert.deepEqual(
    checked!.accounts.map((each) => each.address),
    [await ataOf(FROM, USDC), USDC.contract_address, await ataOf(owner, USDC), FROM],
  )
  const [one, two] = signing(SOL, unsigned, keys)
  const signatures = [
    ed25519.sign(one!.message, omnibus.secretKey),
    ed25519.sign(two!.message, secret),
  ].map((signature) => ({ signature, recoveryId: null }))
  const transaction = getTransactionDecoder().decode(
    Buffer.from(assemble(SOL, unsigned, signatures, keys).raw, 'hex'),
  )
  for (const signer of [owner, FROM])
    assert.ok(
      await verifySignature(
        await getPublicKeyFromAddress(signer),
        transaction.signatures[signer]!,
        transaction.messageBytes,
      ),
    )
  refuses(() => assemble(SOL, unsigned, signatures.toReversed(), keys), 'SIGNATURE')
  refuses(
    () => decode(SOL, { ...unsigned, inputs: unsigned.inputs.toReversed() }, ASSETS, keys),
    'PATH',
  )
  refuses(
    () => decode(SOL, { ...unsigned, inputs: unsigned.inputs.slice(0, 1) }, ASSETS, keys),
    'SHAPE',
  )
  // A transfer built outside our code whose fee a third account pays: a second signature is allowed
  // for sweeps only.
  const third = createNoopSigner(owner)
  const [source, destination] = [await ataOf(FROM, USDT), await ataOf(TO, USDT)]
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (m) => setTransactionMessageFeePayer(owner, m),
    (m) =>
      setTransactionMessageLifetimeUsingBlockhash(
        { blockhash: blockhash(HASH), lastValidBlockHeight: 1n },
        m,
      ),
    (m) =>
      appendTransactionMessageInstructions(
        [
          getCreateAssociatedTokenIdempotentInstruction({
            payer: third,
            ata: destination,
            owner: TO,
            mint: mint(USDT),
          }),
          getTransferCheckedInstruction({
            source,
            mint: mint(USDT),
            destination,
            authority: payer,
            amount: 7n,
            decimals: 6,
          }),
        ],
        m,
      ),
  )
  refuses(
    () =>
      decode(
        SOL,
        {
          ...unsigned,
          bytes: Buffer.from(
            compileTransaction(message).messageBytes as unknown as Uint8Array,
          ).toString('hex'),
        },
        ASSETS,
        keys,
      ),
    'SHAPE',
    /only if the receiver/,
  )
})

test('refuses transactions of another structure', async () => {
  const transfer = getTransferSolInstruction({ source: payer, destination: TO, amount: 5n })
  const [create, checked] = (await tokenTransfer(USDT)) as [Instruction, Instruction]
  const nonce = getAdvanceNonceAccountInstruction({ nonceAccount: TO, nonceAuthority: payer })
  const to2022 = {
    ...checked,
    programAddress: address('TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb'),
  }
  const shapes: [string, Instruction[], RegExp][] = [
    ['two transfers', [transfer, transfer], /exactly one/],
    ['a durable nonce', [nonce, transfer], /durable nonce/],
    ['no instruction', [], /has no receiver/],
    ['only an account', [create], /TransferChecked/],
    ['a token transfer that does not name the owner', [checked], /CreateIdempotent/],
    ['two token transfers', [create, checked, checked], /exactly one/],
    ['a transfer before the token transfer', [transfer, create, checked], /exactly one/],
    ['Token-2022', [create, to2022], /Token-2022/],
    [
      'an unknown program',
      [
        {
          programAddress: address('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr'),
          accounts: [],
          data: Buffer.from('hi'),
        },
        transfer,
      ],
      /./,
    ],
    ['two prices', [...budget(5), ...budget(5), transfer], /twice/],
    [
      'another compute budget instruction',
      [
        {
          programAddress: address('ComputeBudget111111111111111111111111111111'),
          data: Uint8Array.of(1, 0, 0, 0, 0),
        },
        transfer,
      ],
      /not allowed/,
    ],
    ['a price without units', [budget(5)[1] as Instruction, transfer], /without a limit/],
    [
      'nothing',
      [getTransferSolInstruction({ source: payer, destination: TO, amount: 0n })],
      /makes no payment/,
    ],
    [
      'to oneself',
      [getTransferSolInstruction({ source: payer, destination: FROM, amount: 5n })],
      /./,
    ],
    [
      'an authority that is another signer',
      [
        create,
        {
          ...checked,
          accounts: [...checked.accounts!.slice(0, 3), { address: TO, role: 2 }],
        } as Instruction,
      ],
      /signature/,
    ],
  ]
  for (const [, instructions, message] of shapes)
    refuses(() => of(kit(instructions)), /^(SHAPE|ENCODING)$/, message)
  refuses(() => of(kit([transfer], 'legacy')), 'SHAPE', /version 0/)
  const stranger = await ataOf(address(HASH), USDT)
  refuses(
    () =>
      of(
        kit([
          create,
          {
            ...checked,
            accounts: checked.accounts!.map((each, index) =>
              index === 2 ? { ...each, address: stranger } : each,
            ),
          },
        ]),
      ),
    'SHAPE',
    /the associated token account of its owner/,
  )
})

test('refuses a mint, decimals or path other than the registered ones', () => {
  refuses(() => of(build({ ...USDT, contract_address: HASH })), 'CONTRACT')
  refuses(() => of(build({ ...USDT, decimals: 9 })), 'CONTRACT')
  refuses(
    () => decode(SOL, build(NATIVE), ASSETS, () => ed25519.getPublicKey(new Uint8Array(32))),
    'PATH',
  )
  refuses(() => of({ ...build(NATIVE), inputs: [{ path: PATH }, { path: PATH }] }), 'SHAPE')
})

test('changing, removing or adding any byte changes the meaning or is refused', () => {
  for (const asset of [NATIVE, USDC]) {
    // The unit price is so high that each unit changes the fee.
    const unsigned = build(asset, 1_500_000n, 1_000_000n)
    const meaning = JSON.stringify(of(unsigned), (_key, value: unknown) =>
      typeof value === 'bigint' ? `${value}` : value,
    )
    const bytes = Buffer.from(unsigned.bytes, 'hex')
    const hashAt = bytes.indexOf(base58.decode(HASH))
    for (let index = 0; index < bytes.length; index++) {
      if (index >= hashAt && index < hashAt + 32) continue
      const changed = Buffer.from(bytes)
      changed[index] = (changed[index] as number) ^ 1
      let other: string
      try {
        other = JSON.stringify(
          of({ ...unsigned, bytes: changed.toString('hex') }),
          (_key, value: unknown) => (typeof value === 'bigint' ? `${value}` : value),
        )
      } catch {
        continue
      }
      assert.notEqual(other, meaning, `byte ${index}`)
    }
    refuses(() => of({ ...unsigned, bytes: `${unsigned.bytes}00` }), 'TRANSACTION')
    refuses(() => of({ ...unsigned, bytes: unsigned.bytes.slice(0, -2) }), 'TRANSACTION')
  }
})

test('accepts valid addresses and refuses invalid ones with a reason', async () => {
  assert.deepEqual(validate(SOL, TO), { valid: true, address: TO, address_tag: null })
  const bad: [string, RegExp][] = [
    ['', /base58/],
    [TO.slice(2), /./],
    [`${TO}1`, /./],
    ['0OIl', /base58/],
    ['0x0000000000000000000000000000000000000000', /base58/],
    [await ataOf(TO, USDT), /owner/],
    ['11111111111111111111111111111111', /lost/],
  ]
  for (const [text, reason] of bad) {
    const answer = validate(SOL, text)
    assert.ok(!answer.valid && reason.test(answer.reason), `${text}: ${JSON.stringify(answer)}`)
  }
  assert.equal(validate(SOL, TO, '1').valid, false)
})
