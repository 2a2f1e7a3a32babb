import { randomUUID } from 'node:crypto'
import { callPlatform } from '../connect.ts'

/**
 * Functions of the demo for its parts: `call` makes a request signed by a user, `say` prints a
 * line, and `waitFor` waits.
 */
export interface DemoTools {
  home: string
  call<T>(method: string, path: string, body?: unknown): Promise<T>
  say(text: string): void
  waitFor<T>(what: string, read: () => Promise<T | null>): Promise<T>
}

interface Account {
  id: string
  warnings: string[]
  balances: { asset: string; total: string }[]
}
interface Order {
  id: string
  status: string
  filled: string
  average_price: string
  fees: { asset: string; amount: string }[]
}
interface Moved {
  id: string
  status: string
  credited: string | null
  fee: string | null
  reason: string | null
}

const COIN = 'BTC'
const FUND = '1'
const SENT = '0.5'
const BACK = '0.25'

/** Links an account at the local Kraken and returns its ID. */
async function linkAccount({ home, call }: DemoTools): Promise<string> {
  const key = (await callPlatform(home, 'devnet', {
    command: 'venue',
    action: 'key',
    exchange: 'kraken',
  })) as Record<string, string>
  const { id } = await call<Account>('POST', '/dac/v1/exchange-accounts', {
    exchange: 'kraken',
    label: 'demo',
    allow_withdrawal: true,
    ...key,
  })
  return id
}

/** Returns the total balance of an asset at the exchange, as a decimal. */
async function balanceAt({ call }: DemoTools, account: string, asset: string): Promise<string> {
  return (
    (await call<Account>('GET', `/dac/v1/exchange-accounts/${account}`)).balances.find(
      (each) => each.asset === asset,
    )?.total ?? '0'
  )
}

/** Creates a wallet, and waits until a deposit is credited to it. */
async function fundWallet({ home, call, waitFor }: DemoTools): Promise<void> {
  await call('POST', '/dac/v1/create-wallet', { asset: COIN })
  const { address } = await call<{ address: string }>('POST', '/dac/v1/address', {
    asset: COIN,
  })
  await callPlatform(home, 'devnet', { command: 'fund', asset: COIN, address, amount: FUND })
  await waitFor('trading: the wallet’s deposit', async () => {
    const [wallet] = await call<{ balance: string }[]>('GET', `/dac/v1/wallets?asset=${COIN}`)
    return Number(wallet?.balance) > 0 ? true : null
  })
}

/**
 * Waits until an exchange transfer is completed.
 * @throws Error if it fails
 */
const completedTransfer = ({ call, waitFor }: DemoTools, id: string): Promise<Moved> =>
  waitFor(`trading: exchange transfer ${id}`, async () => {
    const now = await call<Moved>('GET', `/dac/v1/exchange-transfers/${id}`)
    if (now.status === 'failed')
      throw new Error(`trading: exchange transfer ${id}: ${now.reason ?? 'failed'}`)
    return now.status === 'completed' ? now : null
  })

/** Sends a part of the wallet's balance to the exchange, and waits until it is credited. */
async function sendToExchange(tools: DemoTools, account: string): Promise<void> {
  const { call, say } = tools
  const { address } = await call<{ address: string }>(
    'GET',
    `/dac/v1/exchange-accounts/${account}/deposit-address?asset=${COIN}`,
  )
  const { id: transfer } = await call<{ id: string }>('POST', '/dac/v1/transaction', {
    asset: COIN,
    amount: SENT,
    destination_type: 'EXCHANGE',
    destination_id: account,
    destination_address: address,
    source_type: 'INTERNAL',
    sequence_id: randomUUID(),
  })
  const {
    data: [moved],
  } = await call<{ data: Moved[] }>('GET', `/dac/v1/exchange-transfers?transaction_id=${transfer}`)
  say(
    `trading: ${(await completedTransfer(tools, (moved as Moved).id)).credited} ${COIN} sent to ${address} and credited by the exchange`,
  )
}

/**
 * Sends a market order, and waits until it is filled.
 * @param amount in coins, as a decimal
 * @throws Error if the order is rejected or cancelled
 */
async function trade(
  { call, say, waitFor }: DemoTools,
  account: string,
  side: 'buy' | 'sell',
  amount: string,
): Promise<void> {
  const { id } = await call<Order>('POST', '/dac/v1/orders', {
    exchange_account: account,
    market: `${COIN}/USD`,
    side,
    type: 'market',
    amount,
    sequence_id: randomUUID(),
  })
  const order = await waitFor(`trading: order ${id}`, async () => {
    const now = await call<Order>('GET', `/dac/v1/orders/${id}`)
    if (now.status === 'rejected' || now.status === 'cancelled')
      throw new Error(`trading: the order to ${side} was ${now.status}`)
    return now.status === 'filled' ? now : null
  })
  const fee = order.fees.map((each) => `${each.amount} ${each.asset}`).join(', ')
  say(
    `trading: ${side === 'buy' ? 'bought' : 'sold'} ${order.filled} ${COIN} at ${order.average_price} USD; the exchange’s fee ${fee}`,
  )
}

/** Withdraws a part of the exchange account's balance to the wallet. */
async function withdraw(tools: DemoTools, account: string): Promise<void> {
  const { id: withdrawal } = await tools.call<Moved>('POST', '/dac/v1/exchange-withdrawals', {
    exchange_account: account,
    asset: COIN,
    amount: BACK,
    sequence_id: randomUUID(),
  })
  const back = await completedTransfer(tools, withdrawal)
  const left = await balanceAt(tools, account, COIN)
  tools.say(
    `trading: ${BACK} ${COIN} withdrawn to the wallet, less the exchange’s fee of ${back.fee ?? '0'}; it holds ${left} ${COIN} now`,
  )
}

/**
 * Links an account at the local Kraken, sends a coin there, trades it, and returns it.
 * @throws Error if a step has another result
 */
export async function tradeInDemo(tools: DemoTools): Promise<void> {
  const account = await linkAccount(tools)
  tools.say(
    `trading: an account at the local Kraken is linked; it holds ${await balanceAt(tools, account, COIN)} ${COIN} and ${await balanceAt(tools, account, 'USD')} USD`,
  )
  await fundWallet(tools)
  await sendToExchange(tools, account)
  await trade(tools, account, 'buy', '0.01')
  await trade(tools, account, 'sell', '0.02')
  await withdraw(tools, account)
}
