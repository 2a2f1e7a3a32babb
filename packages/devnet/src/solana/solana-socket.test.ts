// sendAndConfirmTransaction and subscriptions of @solana/kit, unmodified, over the local chain's
// WebSocket.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { getTransferSolInstruction } from '@solana-program/system'
import {
  appendTransactionMessageInstructions,
  assertIsTransactionWithBlockhashLifetime,
  createKeyPairSignerFromPrivateKeyBytes,
  createSolanaRpc,
  createSolanaRpcSubscriptions,
  createTransactionMessage,
  pipe,
  sendAndConfirmTransactionFactory,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
  type KeyPairSigner,
} from '@solana/kit'
import { removeHome, startDevnet, tempHome, type Running } from '../../testing/support.ts'
import { waitFor } from '../../../../testing/wait-for.ts'

const home = tempHome()
let devnet: Running
let alice: KeyPairSigner
let bob: KeyPairSigner
let socketUrl = ''
const clients = () => ({
  rpc: createSolanaRpc(`${devnet.url}/sol`),
  rpcSubscriptions: createSolanaRpcSubscriptions(socketUrl),
})
const mine = () =>
  devnet.control<{ height: number }>({ command: 'mine', network: 'SOL', blocks: 1 })

before(async () => {
  devnet = await startDevnet(home)
  socketUrl = `${devnet.url.replace('http:', 'ws:')}/sol`
  alice = await createKeyPairSignerFromPrivateKeyBytes(Buffer.alloc(32, 1))
  bob = await createKeyPairSignerFromPrivateKeyBytes(Buffer.alloc(32, 2))
  await devnet.control({ command: 'fund', asset: 'SOL', address: alice.address, amount: '10' })
})
after(async () => {
  await devnet.stop()
  removeHome(home)
})

async function transfer(amount: bigint) {
  const { value } = await clients().rpc.getLatestBlockhash().send()
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (m) => setTransactionMessageFeePayerSigner(alice, m),
    (m) => setTransactionMessageLifetimeUsingBlockhash(value, m),
    (m) =>
      appendTransactionMessageInstructions(
        [getTransferSolInstruction({ source: alice, destination: bob.address, amount })],
        m,
      ),
  )
  const signed = await signTransactionMessageWithSigners(message)
  assertIsTransactionWithBlockhashLifetime(signed)
  return signed
}

test('sendAndConfirmTransaction resolves after inclusion, and rejects invalid transactions', async () => {
  const sendAndConfirm = sendAndConfirmTransactionFactory(clients())
  for (const commitment of ['processed', 'confirmed', 'finalized'] as const)
    await devnet.mined(
      'SOL',
      sendAndConfirm(await transfer(1_000_000n + BigInt(commitment.length)), { commitment }),
    )
  assert.ok((await clients().rpc.getBalance(bob.address).send()).value > 3_000_000n)
  await assert.rejects(sendAndConfirm(await transfer(10n ** 12n), { commitment: 'confirmed' }))
})

test('subscriptions report slots, an account, logs, and a signature that is already in a block', async () => {
  const { rpc, rpcSubscriptions } = clients()
  const stop = new AbortController()
  const abortSignal = stop.signal
  // Kit stores notifications from the first call of `next` on.
  const first = async <T>(subscription: Promise<AsyncIterable<T>>) =>
    (await subscription)[Symbol.asyncIterator]().next()
  const account = first(
    rpcSubscriptions
      .accountNotifications(bob.address, { encoding: 'base64', commitment: 'confirmed' })
      .subscribe({ abortSignal }),
  )
  const logs = first(
    rpcSubscriptions.logsNotifications({ mentions: [bob.address] }).subscribe({ abortSignal }),
  )
  const slot = first(rpcSubscriptions.slotNotifications().subscribe({ abortSignal }))
  // This client subscribes after the others.
  let isReady = false
  void first(rpcSubscriptions.rootNotifications().subscribe({ abortSignal })).then(() => {
    isReady = true
  })
  await waitFor('a root is reported', async () => {
    await mine()
    return isReady
  })
  const { hash } = await devnet.control<{ hash: string }>({
    command: 'fund',
    asset: 'SOL',
    address: bob.address,
    amount: '2',
  })
  assert.equal(
    (await account).value?.value.lamports,
    (await rpc.getBalance(bob.address).send()).value,
  )
  assert.equal((await logs).value?.value.signature, hash)
  const { value: notification } = await slot
  assert.ok(notification && notification.parent < notification.slot)
  await hearLate(hash)
  stop.abort()
})

/** Checks that a client that subscribes late is notified too. */
async function hearLate(hash: string): Promise<void> {
  const socket = new WebSocket(socketUrl)
  const messages: {
    id?: number
    result?: unknown
    error?: { code: number }
    method?: string
    params?: { result: { value?: unknown }; subscription: number }
  }[] = []
  socket.addEventListener('message', ({ data }) =>
    messages.push(JSON.parse(String(data)) as (typeof messages)[0]),
  )
  const received = (count: number) => waitFor(`${count} messages`, () => messages.length >= count)
  await once(socket, 'open')
  const ask = (id: number, method: string, ...params: unknown[]) =>
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
  ask(1, 'signatureSubscribe', hash, { commitment: 'finalized' })
  await received(2)
  assert.equal(messages[0]?.result, 1)
  assert.deepEqual(
    [messages[1]?.method, messages[1]?.params?.result.value, messages[1]?.params?.subscription],
    ['signatureNotification', { err: null }, 1],
  )
  // The notification ended the subscription; a slot subscription is ended by its owner and then
  // sends nothing more.
  ask(2, 'signatureUnsubscribe', 1)
  ask(3, 'rootSubscribe')
  ask(4, 'rootUnsubscribe', 2)
  ask(5, 'accountSubscribe', 'nobody')
  ask(6, 'blockSubscribe', 'all')
  await received(7)
  assert.deepEqual(
    messages.slice(2).map(({ result, error }) => result ?? error?.code),
    [-32602, 2, true, -32602, -32601],
  )
  await mine()
  ask(7, 'rootSubscribe')
  await received(8)
  assert.equal(messages.at(-1)?.result, 3)
  socket.close()
}
