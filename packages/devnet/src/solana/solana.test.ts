// @solana/kit, unmodified, with the local chain; and transactions that the Solana runtime refuses.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { getTransferSolInstruction } from '@solana-program/system'
import {
  appendTransactionMessageInstructions,
  createKeyPairSignerFromPrivateKeyBytes,
  createSolanaRpc,
  createTransactionMessage,
  getBase64EncodedWireTransaction,
  getSignatureFromTransaction,
  lamports,
  pipe,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
  type Address,
  type Base64EncodedWireTransaction,
  type Blockhash,
  type KeyPairSigner,
  type Signature,
} from '@solana/kit'
import { removeHome, startDevnet, tempHome, type Running } from '../../testing/support.ts'

let devnet: Running
let rpc: ReturnType<typeof createSolanaRpc>
let alice: KeyPairSigner
let bob: KeyPairSigner
const home = tempHome()
const connect = () => {
  rpc = createSolanaRpc(`${devnet.url}/sol`)
}
const fund = (asset: string, address: string, amount: string) =>
  devnet.control<{ hash: string }>({ command: 'fund', asset, address, amount })
const mine = (blocks = 1) =>
  devnet.control<{ height: number; hash: string }>({ command: 'mine', network: 'SOL', blocks })
const balance = async (address: Address) => (await rpc.getBalance(address).send()).value

async function transfer(amount: bigint, o: { blockhash?: Blockhash; to?: Address } = {}) {
  const { value } = await rpc.getLatestBlockhash().send()
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (m) => setTransactionMessageFeePayerSigner(alice, m),
    (m) =>
      setTransactionMessageLifetimeUsingBlockhash(
        { ...value, ...(o.blockhash ? { blockhash: o.blockhash } : {}) },
        m,
      ),
    (m) =>
      appendTransactionMessageInstructions(
        [getTransferSolInstruction({ source: alice, destination: o.to ?? bob.address, amount })],
        m,
      ),
  )
  return signTransactionMessageWithSigners(message)
}
const send = (raw: Base64EncodedWireTransaction) =>
  rpc.sendTransaction(raw, { encoding: 'base64' }).send()
const printed = (value: unknown) =>
  JSON.stringify(value, (_key, each: unknown) => (typeof each === 'bigint' ? `${each}` : each))
const refused = (raw: Base64EncodedWireTransaction, reason: RegExp) =>
  assert.rejects(send(raw), (error: Error & { cause?: Error; context?: unknown }) =>
    reason.test(`${error.message} ${printed(error.context ?? {})} ${error.cause?.message ?? ''}`),
  )

before(async () => {
  devnet = await startDevnet(home)
  connect()
  alice = await createKeyPairSignerFromPrivateKeyBytes(Buffer.alloc(32, 1))
  bob = await createKeyPairSignerFromPrivateKeyBytes(Buffer.alloc(32, 2))
  await fund('SOL', alice.address, '10')
})
after(async () => {
  await devnet.stop()
  removeHome(home)
})

test('executes a transfer made with kit and returns it in a block with its balances', async () => {
  const transaction = await transfer(1_000_000_000n)
  assert.equal(
    await send(getBase64EncodedWireTransaction(transaction)),
    getSignatureFromTransaction(transaction),
  )
  const statuses = async () =>
    (
      await rpc
        .getSignatureStatuses([getSignatureFromTransaction(transaction)], {
          searchTransactionHistory: true,
        })
        .send()
    ).value
  assert.deepEqual(await statuses(), [null])
  await mine()
  const value = await statuses()
  assert.equal(value[0]!.confirmationStatus, 'finalized')
  assert.equal(await balance(bob.address), lamports(1_000_000_000n))
  assert.equal(await balance(alice.address), lamports(8_999_995_000n))
  const block = await rpc
    .getBlock(value[0]!.slot, {
      maxSupportedTransactionVersion: 0,
      transactionDetails: 'full',
      encoding: 'json',
      rewards: false,
    })
    .send()
  assert.equal(block!.transactions[0]!.meta!.fee, 5000n)
})

test('refuses replays, bad signatures, old blockhashes, and balances below the rent minimum', async () => {
  const transaction = getBase64EncodedWireTransaction(await transfer(5n))
  await send(transaction)
  await mine()
  await refused(transaction, /already been processed/)
  const bytes = Buffer.from(getBase64EncodedWireTransaction(await transfer(6n)), 'base64')
  bytes[5] = (bytes[5] as number) ^ 1
  await refused(bytes.toString('base64') as Base64EncodedWireTransaction, /signature verification/i)
  const old = getBase64EncodedWireTransaction(await transfer(7n))
  await mine(150)
  const last = getBase64EncodedWireTransaction(await transfer(8n))
  await mine()
  await refused(old, /Blockhash not found/i)
  await send(last)
  await refused(
    getBase64EncodedWireTransaction(
      await transfer(9n, { blockhash: bob.address as string as Blockhash }),
    ),
    /Blockhash not found/i,
  )
  await refused(
    getBase64EncodedWireTransaction(
      await transfer(890_879n, { to: '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM' as Address }),
    ),
    /rent/i,
  )
  await refused(
    getBase64EncodedWireTransaction(await transfer(100_000_000_000n)),
    /insufficient|Custom|InstructionError/i,
  )
})

test('tokens arrive at the associated account; empty slots are distinguished from future ones', async () => {
  await fund('USDC_SOL', bob.address, '12.5')
  const { tokens } = await devnet.control<{ tokens: Record<string, { address: Address }> }>({
    command: 'info',
  })
  const accounts = await rpc
    .getTokenAccountsByOwner(
      bob.address,
      { mint: tokens['USDC_SOL']!.address },
      { encoding: 'jsonParsed' },
    )
    .send()
  assert.equal(accounts.value[0]!.account.data.parsed.info.tokenAmount.amount, '12500000')
  await assert.rejects(rpc.getBlock(10n, { maxSupportedTransactionVersion: 0 }).send(), /skipped/)
  assert.deepEqual(await rpc.getBlocksWithLimit(10n, 1).send(), [11n])
  await assert.rejects(
    rpc.getBlock(1_000_000n, { maxSupportedTransactionVersion: 0 }).send(),
    /not available/,
  )
  const funded = await fund('SOL', bob.address, '1')
  await assert.rejects(
    rpc.getTransaction(funded.hash as Signature, { encoding: 'json' } as never).send(),
    /version/i,
  )
})

test("returns an account's history newest first, unless the node is behind the required slot", async () => {
  const first = await rpc.getSignaturesForAddress(bob.address).send()
  const sent = await transfer(21n)
  await send(getBase64EncodedWireTransaction(sent))
  await mine()
  const matches = await rpc.getSignaturesForAddress(bob.address, { limit: 2 }).send()
  assert.deepEqual(
    matches.map(({ signature }) => signature),
    [getSignatureFromTransaction(sent), first[0]!.signature],
  )
  assert.deepEqual(
    (await rpc.getSignaturesForAddress(bob.address, { before: matches[0]!.signature }).send()).map(
      ({ signature }) => signature,
    ),
    first.map(({ signature }) => signature),
  )
  const { absoluteSlot } = await rpc.getEpochInfo().send()
  await assert.rejects(
    rpc.getSignaturesForAddress(bob.address, { minContextSlot: absoluteSlot + 1000n }).send(),
    /context slot/i,
  )
})

test('after kill -9 the blocks are the same, and a transaction is not accepted twice', async () => {
  const transaction = await transfer(11n)
  await send(getBase64EncodedWireTransaction(transaction))
  const head = await mine()
  const slots = await rpc.getBlocks(0n).send()
  const held = await balance(bob.address)
  await devnet.killAll()
  devnet = await startDevnet(home)
  connect()
  assert.deepEqual((await rpc.getBlocks(0n).send()).slice(0, slots.length), slots)
  assert.equal(
    (await rpc
      .getBlock(BigInt(head.height), {
        maxSupportedTransactionVersion: 0,
        transactionDetails: 'none',
        rewards: false,
      })
      .send())!.blockhash,
    head.hash,
  )
  assert.equal(await balance(bob.address), held)
  await refused(getBase64EncodedWireTransaction(transaction), /already been processed/)
})
