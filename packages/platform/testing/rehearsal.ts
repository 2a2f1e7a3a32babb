import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEther, type Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { GethChain } from '../../devnet/testing/geth.ts'
import { waitFor } from '../../../testing/wait-for.ts'
import { balance, call, TestPlatform, transferBody, type Transfer, type User } from './harness.ts'

/** Chain id of the private chains of the tests, which is that of no known network. */
export const CHAIN_ID = 271_828
export const MODE = `regtest-${CHAIN_ID}`
export const PAYEE = '0x00000000000000000000000000000000000000b1'
const payer = privateKeyToAccount(`0x${'42'.repeat(32)}`)

/** Balances of the first block, for a chain of geth. */
export const ALLOC = { [payer.address]: 10n ** 24n }

/** Init code that uses all of its gas: a jump to itself. */
const ENDLESS = '0x5b600056'
const GWEI = 10n ** 9n
/** Gas of a transaction that fills a block. A node of the usual options accepts one for at most 1 ETH. */
const FILLING_GAS = 9_000_000n

interface Endpoint {
  url: string
  username?: string
  password?: string
}

/** A platform on private chains, with one caller. */
export class Rehearsal {
  readonly folder = mkdtempSync(join(tmpdir(), 'custody-rehearsal-'))
  readonly platform = new TestPlatform({ mode: 'empty-home' })
  readonly settings = {
    CUSTODY_NETWORK: MODE,
    CUSTODY_CONFIG: join(this.folder, 'custody.config.json'),
    // Prices come from public sources, which no test may need.
    CUSTODY_PRICE_EXCHANGES: '',
    CUSTODY_COINGECKO_URL: 'http://127.0.0.1:9',
    CUSTODY_FEES_WITHOUT_PRICE: 'ETH=0,BTC=0,LTC=0',
  }
  user!: User
  #nonce = 0

  async start(
    networks: Record<string, { endpoints: readonly Endpoint[]; quorum?: number }>,
  ): Promise<void> {
    writeFileSync(this.settings.CUSTODY_CONFIG, JSON.stringify({ networks }), { mode: 0o600 })
    await this.platform.start(this.settings)
    this.user = await this.platform.user('alice')
  }

  async remove(): Promise<void> {
    await this.platform.remove()
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** Creates a wallet, and returns its first address. */
  async newAddress(asset: string): Promise<string> {
    const made = async (path: string) =>
      waitFor(`${path} ${asset}`, async () => {
        const answer = await call<{ address: string }>(this.user, 'POST', path, { asset })
        return answer.status === 200 ? answer.body : null
      })
    await made('/dac/v1/create-wallet')
    return (await made('/dac/v1/address')).address
  }

  /** Creates a transfer, and returns its id. */
  async send(asset: string, amount: string, to: string): Promise<string> {
    const created = await call<Transfer>(
      this.user,
      'POST',
      '/dac/v1/transaction',
      transferBody(asset, amount, to),
    )
    assert.equal(created.status, 200, created.text)
    return created.body.id
  }

  async transfer(id: string): Promise<Transfer> {
    return (await call<Transfer>(this.user, 'GET', `/dac/v1/transaction/${id}`)).body
  }

  /** Waits until a transfer has ended while `step` makes blocks. */
  ended(id: string, step: () => Promise<unknown>): Promise<Transfer> {
    return waitFor(`transfer ${id}`, async () => {
      await step()
      const transfer = await this.transfer(id)
      return transfer.status === 'pending' ? null : transfer
    })
  }

  /** Like {@link ended}, and asserts that the transfer is confirmed. */
  async confirmed(id: string, step: () => Promise<unknown>): Promise<Transfer> {
    const done = await this.ended(id, step)
    assert.equal(done.status, 'confirmed', String(done.failure_reason))
    return done
  }

  /** Waits until a wallet has a balance while `step` makes blocks. */
  async credited(asset: string, amount: string, step: () => Promise<unknown>): Promise<void> {
    await waitFor(`${amount} ${asset}`, async () => {
      await step()
      return (await balance(this.user, asset)).balance === amount
    })
  }

  /**
   * Waits until a transfer is in the nodes' pool, and returns its hash. Makes the blocks that its fuel
   * needs.
   */
  inPool(id: string, step: () => Promise<unknown>): Promise<string> {
    return waitFor(`${id} is broadcast`, async () => {
      const { hash, sub_status: state } = await this.transfer(id)
      if (state === 'FUELING') await step()
      return state === 'CONFIRMING' && hash
    })
  }

  /** Signs a transaction of the payer, who has coins from the first block. */
  #sign(fields: { to?: Hex; value?: bigint; data?: Hex; gas: bigint; tip: bigint }): Promise<Hex> {
    const { tip, ...rest } = fields
    return payer.signTransaction({
      chainId: CHAIN_ID,
      type: 'eip1559',
      nonce: this.#nonce++,
      maxFeePerGas: 100n * GWEI,
      maxPriorityFeePerGas: tip,
      ...rest,
    })
  }

  /** Sends ether of the payer, and makes a block with the payment. */
  async pay(chain: GethChain, to: string, ether: string): Promise<void> {
    const raw = await this.#sign({
      to: to as Hex,
      value: parseEther(ether),
      gas: 21_000n,
      tip: GWEI,
    })
    await chain.include(await chain.first.call<Hex>('eth_sendRawTransaction', raw))
  }

  /**
   * Makes a full block of transactions that pay more than others, so that no other transaction has
   * room in it. Returns the base fee of the next block, which is an eighth higher.
   */
  async fillBlock(chain: GethChain): Promise<bigint> {
    const node = chain.first
    const { gasLimit } = await node.call<{ gasLimit: Hex }>('eth_getBlockByNumber', 'latest', false)
    let last: Hex = '0x'
    for (let left = BigInt(gasLimit); left > 0n; left -= FILLING_GAS) {
      const gas = left < FILLING_GAS ? left : FILLING_GAS
      const raw = await this.#sign({ data: ENDLESS, gas, tip: 2n * GWEI })
      last = await node.call<Hex>('eth_sendRawTransaction', raw)
    }
    // The last one is in no block before the others.
    await chain.include(last)
    const { baseFeePerGas } = await node.call<{ baseFeePerGas: Hex }>(
      'eth_getBlockByNumber',
      'latest',
      false,
    )
    return (BigInt(baseFeePerGas) * 9n) / 8n
  }

  /** Returns what the payee has on the chain, in wei. */
  async received(chain: GethChain): Promise<bigint> {
    return BigInt(await chain.first.call<Hex>('eth_getBalance', PAYEE, 'latest'))
  }
}
