import { derivePublicKey } from '@custody/chains'
import { createHash, randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { ask, cancel, faster, payment as paymentOf, type Payment } from '../../testing/amending.ts'
import {
  BTC,
  btc,
  ETH,
  eth,
  funding,
  SignerCluster,
  pay,
  refused,
  signed,
  SINK_BTC,
  SINK_ETH,
  type Workspace,
} from '../../testing/signer-cluster.ts'

/** Rule 9's signed speed-up and rule 14's signed cancel. */
let cluster: SignerCluster
let workspace: Workspace
const ONE = 10n ** 18n
const GWEI = 1_000_000_000n
const CHANGE = 0x7fffffff

before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
  workspace = await cluster.workspace()
})
after(async () => {
  await cluster.stop()
})

let next = 300
const payment = (more: Record<string, unknown> = {}): Promise<Payment> =>
  paymentOf(workspace, next++, more)

describe('speed-up of a payment', () => {
  test("a speed-up raises the caller's fee limit to the limit that the speed-up states", async () => {
    const { mine, path, id, request } = await payment({ fee_rate: 2 })
    signed(await workspace.sign(pay(request), eth(path, { value: ONE })))
    const dearer = eth(path, { value: ONE, maxFeePerGas: 3n * GWEI })
    refused(await workspace.sign(pay(request), dearer), 'FEE_RATE')
    const speedUp = await ask(mine, id, 'speed-up', { fee_rate: 3 })
    refused(
      await workspace.sign(
        faster(request, speedUp),
        eth(path, { value: ONE, maxFeePerGas: 3n * GWEI + 1n }),
      ),
      'FEE_RATE',
    )
    signed(await workspace.sign(faster(request, speedUp), dearer))
  })
  test('a speed-up must pay the same as the first transaction and replace it', async () => {
    const { mine, path, id, request } = await payment()
    signed(await workspace.sign(pay(request), eth(path, { value: ONE })))
    const speedUp = await ask(mine, id, 'speed-up')
    refused(
      await workspace.sign(
        faster(request, speedUp),
        eth(path, { value: ONE, nonce: 1, maxFeePerGas: 3n * GWEI }),
      ),
      'NOT_EXCLUSIVE',
    )
    refused(
      await workspace.sign(
        faster(request, speedUp),
        eth(path, { value: ONE + 1n, maxFeePerGas: 3n * GWEI }),
      ),
      'AMOUNT_MISMATCH',
    )
    refused(
      await workspace.sign(
        faster(request, speedUp),
        eth(path, {
          value: ONE,
          to: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
          maxFeePerGas: 3n * GWEI,
        }),
      ),
      'DESTINATION_MISMATCH',
    )
  })
  test('refuses a speed-up of another transfer or sub-account, by a read-only key, or malformed', async () => {
    const { mine, path, request, id } = await payment()
    const unsigned = eth(path, { value: ONE })
    refused(
      await workspace.sign(faster(request, await ask(mine, randomUUID(), 'speed-up')), unsigned),
      'ACTION_NOT_ALLOWED',
    )
    refused(
      await workspace.sign(faster(request, await ask(mine, id, 'cancel')), unsigned),
      'ACTION_NOT_ALLOWED',
    )
    refused(
      await workspace.sign(
        faster(request, await ask(await workspace.caller(next++), id, 'speed-up')),
        unsigned,
      ),
      'WORKSPACE_MISMATCH',
    )
    refused(
      await workspace.sign(
        faster(
          request,
          await ask(await workspace.caller(mine.sub_account, 'read-only'), id, 'speed-up'),
        ),
        unsigned,
      ),
      'READ_ONLY',
    )
    refused(
      await workspace.sign(faster(request, await ask(mine, id, 'speed-up', { fee: 3 })), unsigned),
      'BAD_REQUEST_FIELD',
    )
    refused(
      await workspace.sign(pay(await ask(mine, id, 'speed-up')), unsigned),
      'ACTION_NOT_ALLOWED',
    )
  })
  test('allows exactly one more fuel transaction for a signed speed-up', async () => {
    const { mine, path, id, request } = await payment()
    const source = workspace.address(ETH, path)
    const tank = [0, ETH.chain_index, 0]
    const fuel = (purpose: unknown) => ({
      kind: 'fuel',
      for: purpose,
      gas: '21000',
      max_fee_per_gas: String(2n * GWEI),
    })
    const amount = 21_000n * 2n * GWEI
    signed(
      await workspace.sign(fuel(pay(request)), eth(tank, { to: source, value: amount, nonce: 0 })),
    )
    refused(
      await workspace.sign(fuel(pay(request)), eth(tank, { to: source, value: amount, nonce: 1 })),
      'NOT_EXCLUSIVE',
    )
    const speedUp = await ask(mine, id, 'speed-up')
    signed(
      await workspace.sign(
        fuel(faster(request, speedUp)),
        eth(tank, { to: source, value: amount, nonce: 1 }),
      ),
    )
    refused(
      await workspace.sign(
        fuel(faster(request, speedUp)),
        eth(tank, { to: source, value: amount, nonce: 2 }),
      ),
      'NOT_EXCLUSIVE',
    )
  })
})

describe('cancellation of a payment', () => {
  test('sends no value to the sender with the same nonce, and ends the payment permanently', async () => {
    const { mine, path, id, request } = await payment()
    const self = workspace.address(ETH, path)
    signed(await workspace.sign(pay(request), eth(path, { value: ONE })))
    const by = await ask(mine, id, 'cancel')
    const dearer = { maxFeePerGas: 3n * GWEI }
    refused(
      await workspace.sign(cancel(request, by), eth(path, { to: SINK_ETH, value: 0n, ...dearer })),
      'DESTINATION_MISMATCH',
    )
    refused(
      await workspace.sign(cancel(request, by), eth(path, { to: self, value: 1n, ...dearer })),
      'AMOUNT_MISMATCH',
    )
    refused(
      await workspace.sign(
        cancel(request, by),
        eth(path, { to: self, value: 0n, nonce: 1, ...dearer }),
      ),
      'NOT_EXCLUSIVE',
    )
    refused(
      await workspace.sign(
        cancel(request, await ask(mine, id, 'speed-up')),
        eth(path, { to: self, value: 0n, ...dearer }),
      ),
      'ACTION_NOT_ALLOWED',
    )
    signed(await workspace.sign(cancel(request, by), eth(path, { to: self, value: 0n, ...dearer })))
    refused(
      await workspace.sign(pay(request), eth(path, { value: ONE, maxFeePerGas: 4n * GWEI })),
      'VOIDED',
    )
    refused(
      await workspace.sign(
        pay(request),
        eth(path, { value: ONE, maxFeePerGas: 4n * GWEI }),
        [3, 2],
      ),
      'VOIDED',
    )
  })
  test('a Bitcoin cancellation returns all inputs to the change address', async () => {
    const { mine, id, request } = await payment({
      asset: 'BTC',
      amount: 0.001,
      destination_address: SINK_BTC,
    })
    const path = (index: number) => [mine.sub_account, BTC.chain_index, index]
    const source = funding(workspace, [
      { path: path(0), value: 200_000n },
      { path: path(1), value: 200_000n },
    ])
    signed(
      await workspace.sign(
        pay(request),
        btc(workspace, {
          inputs: [{ funding: source, output: 0, path: path(0) }],
          amount: 100_000n,
          change: { path: path(CHANGE), value: 99_000n },
        }),
      ),
    )
    const by = await ask(mine, id, 'cancel')
    const script = (index: number) =>
      Buffer.concat([
        Buffer.from([0x00, 0x14]),
        createHash('ripemd160')
          .update(
            createHash('sha256')
              .update(
                derivePublicKey(
                  'secp256k1',
                  workspace.key.publicKey,
                  workspace.key.chainCode,
                  path(index),
                ),
              )
              .digest(),
          )
          .digest(),
      ])
    const back = (output: number, index: number) =>
      btc(workspace, {
        inputs: [{ funding: source, output, path: path(output) }],
        amount: 190_000n,
        payTo: script(index),
      })
    refused(await workspace.sign(cancel(request, by), back(0, 5)), 'DESTINATION_MISMATCH')
    refused(await workspace.sign(cancel(request, by), back(1, CHANGE)), 'NOT_EXCLUSIVE')
    signed(await workspace.sign(cancel(request, by), back(0, CHANGE)))
  })
})
