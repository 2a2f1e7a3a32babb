import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { reasonOf } from '@custody/chains/reason'
import { manyLines, oneLine } from '@custody/chains/terminal'
import { dataDirOf } from '../../../core/data-dir.ts'
import { callPlatform } from '../connect.ts'
import { callApi, type User } from './call.ts'
import { waitUntil } from './wait.ts'
import { nextSteps, summary, transferTable, type TransferResult } from './report.ts'
import { tradeInDemo } from './trading.ts'
import { createApiUserEverywhere } from '../enrol.ts'
import { keygen } from '../keygen.ts'

/**
 * This program is `npm run demo`: it shows newcomers the platform's functions on the local chains.
 * The exit code is 0 only if everything was confirmed.
 */

const FUND = '25'
const SEND = '1.5'
/** Time in milliseconds after which a wait is given up. A slow machine needs minutes. */
const WAIT_MAX_MS = 1_200_000
/**
 * Poll interval in milliseconds. About forty assets are polled concurrently, and a key may make
 * 1,000 requests a minute.
 */
const POLL_MS = 2000

interface Asset {
  asset_name: string
  network: string
  name: string
  fee_asset: string
}
interface Transaction {
  id: string
  hash: string | null
  status: string
  sub_status: string
  confirmations: number
  fee: string
  amount: string
  failure_reason: string | null
  fee_asset: string
}

const home = dataDirOf(process.env)
const started = Date.now()
const say = (text: string) =>
  process.stdout.write(
    `${((Date.now() - started) / 1000).toFixed(1).padStart(6)}s  ${oneLine(text)}\n`,
  )
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms))

const call = <T>(
  base: string,
  user: User | null,
  method: string,
  path: string,
  body?: unknown,
): Promise<T> =>
  callApi<T>({ fetch, clock: Date.now, sleep: pause, say }, { base, user, method, path, body })

async function isFree(port: number): Promise<boolean> {
  return new Promise((done) => {
    const server = createServer()
    server.once('error', () => done(false))
    server.listen(port, '127.0.0.1', () => server.close(() => done(true)))
  })
}

/**
 * Uses the platform that runs with this data folder, or starts one for the duration of the demo.
 */
async function platform(): Promise<{ base: string; child: ChildProcess | null }> {
  const urlFile = join(home, 'url')
  if (existsSync(urlFile)) {
    const base = readFileSync(urlFile, 'utf8')
    if (
      await fetch(`${base}/livez`, { signal: AbortSignal.timeout(1000) }).then(
        (answer) => answer.ok,
        () => false,
      )
    ) {
      say(`using the platform that runs at ${base}`)
      return { base, child: null }
    }
  }
  say('starting the platform: PostgreSQL, three signer nodes, the local chains, API and workers')
  const port = process.env['PORT'] ?? ((await isFree(8080)) ? '8080' : '0')
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL('../../../main.ts', import.meta.url))],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...process.env,
        PORT: port,
        CUSTODY_LOG_LEVEL: process.env['CUSTODY_LOG_LEVEL'] ?? 'error',
      },
    },
  )
  const base = await new Promise<string>((done, fail) => {
    let text = ''
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      const match = /^ready (http:\S+)/m.exec(text)
      if (match) done(match[1] as string)
    })
    child.once('exit', (code) =>
      fail(new Error(`the platform ended with ${String(code)} before it was ready`)),
    )
  })
  say(`the platform listens at ${base}`)
  return { base, child }
}

async function makeUser(workspace: string, keyFile: string): Promise<User> {
  if (!existsSync(keyFile)) await keygen({ out: keyFile })
  const { apiKey, answers } = await createApiUserEverywhere(home, {
    workspace,
    subAccount: 'main',
    role: 'full',
    publicKeyPem: readFileSync(`${keyFile}.pub`, 'utf8'),
  })
  say(`API user ${apiKey} of workspace ${workspace}, enrolled at ${answers.length} signer nodes`)
  return { apiKey, privateKey: readFileSync(keyFile, 'utf8'), name: workspace }
}

const waitFor = <T>(what: string, read: () => Promise<T | null>): Promise<T> =>
  waitUntil(
    { clock: Date.now, sleep: pause, say },
    { what, read, pollMs: POLL_MS, maxMs: WAIT_MAX_MS },
  )

const balanceOf = async (base: string, user: User, asset: string) =>
  (
    await call<{ balance: string; omnibus_balance: string }[]>(
      base,
      user,
      'GET',
      `/dac/v1/wallets?asset=${asset}`,
    )
  )[0]

/** Returns the positive balance of a wallet as a decimal; null if it is zero. */
const positiveBalance = async (base: string, user: User, asset: string): Promise<string | null> => {
  const wallet = await balanceOf(base, user, asset)
  return wallet && Number(wallet.balance) > 0 ? wallet.balance : null
}

/** Creates wallets for sender and receiver, and pays a deposit to the sender. */
async function fundSender(
  base: string,
  ticker: string,
  sender: User,
  receiver: User,
): Promise<{ target: { address: string; address_tag: string | null }; before: string }> {
  for (const user of [sender, receiver])
    await call(base, user, 'POST', '/dac/v1/create-wallet', { asset: ticker })
  const { address } = await call<{ address: string }>(base, sender, 'POST', '/dac/v1/address', {
    asset: ticker,
  })
  const target = await call<{ address: string; address_tag: string | null }>(
    base,
    receiver,
    'POST',
    '/dac/v1/address',
    { asset: ticker },
  )
  say(`${ticker}: wallet at ${address}`)
  const { hash } = await callPlatform(home, 'devnet', {
    command: 'fund',
    asset: ticker,
    address,
    amount: FUND,
    tag: null,
  })
  say(`${ticker}: ${FUND} deposited by ${String(hash)}`)
  const before = await waitFor(`${ticker}: deposit`, () => positiveBalance(base, sender, ticker))
  return { target, before }
}

/**
 * Waits until a transfer is confirmed, and prints each of its states.
 * @throws Error if it fails
 */
async function confirmedTransfer(
  base: string,
  sender: User,
  ticker: string,
  id: string,
): Promise<Transaction> {
  let shown = ''
  return waitFor(`${ticker}: transfer ${id}`, async () => {
    const now = await call<Transaction>(base, sender, 'GET', `/dac/v1/transaction/${id}`)
    const line =
      now.hash === null
        ? now.sub_status
        : `${now.hash}  ${now.sub_status}, ${now.confirmations} confirmations`
    if (line !== shown && now.status === 'pending') say(`${ticker}: ${line}`)
    shown = line
    if (now.status === 'failed')
      throw new Error(`${ticker}: transfer failed: ${now.failure_reason ?? ''}`)
    return now.status === 'confirmed' ? now : null
  })
}

/** Receives and sends one asset; the receiver is a customer of another workspace. */
async function transferAsset(
  base: string,
  asset: Asset,
  sender: User,
  receiver: User,
): Promise<TransferResult> {
  const ticker = asset.asset_name
  const { target, before } = await fundSender(base, ticker, sender, receiver)
  const sentAt = Date.now()
  const transfer = await call<Transaction>(base, sender, 'POST', '/dac/v1/transaction', {
    asset: ticker,
    amount: SEND,
    destination_address: target.address,
    ...(target.address_tag === null
      ? {}
      : {
          address_tag: target.address_tag,
        }),
    destination_type: 'EXTERNAL',
    source_type: 'INTERNAL',
    sequence_id: `demo-${ticker}`,
    memo: 'demo',
  })
  say(`${ticker}: credited ${before}; sending ${SEND} as ${transfer.id}`)
  const done = await confirmedTransfer(base, sender, ticker, transfer.id)
  const seconds = ((Date.now() - sentAt) / 1000).toFixed(1)
  say(`${ticker}: confirmed ${String(done.hash)} after ${seconds} s`)
  const received = await waitFor(`${ticker}: the receiver's deposit`, () =>
    positiveBalance(base, receiver, ticker),
  )
  const after = (await balanceOf(base, sender, ticker))?.balance ?? '?'
  return {
    asset: ticker,
    hash: String(done.hash),
    fee: `${done.fee} ${done.fee_asset}`,
    before,
    after,
    received,
    seconds,
  }
}

/**
 * Shows how a flagged deposit is held and released. The sender of the local coins is flagged only
 * for this customer.
 */
async function screening(base: string, user: User): Promise<void> {
  await call(base, user, 'POST', '/dac/v1/create-wallet', { asset: 'ETH' })
  const { address } = await call<{ address: string }>(base, user, 'POST', '/dac/v1/address', {
    asset: 'ETH',
  })
  await call(base, user, 'POST', '/dac/v1/aml', {
    provider: 'CHAINALYSIS',
    aml_token: 'sandbox',
    aml_risk_levels: 'SEVERE, HIGH',
    aml_deposit: true,
    aml_withdrawal: true,
  })
  const deposit = async (state: string) =>
    (
      await call<{ data: (Transaction & { source_id: string })[] }>(
        base,
        user,
        'GET',
        '/dac/v1/transactions?type=Deposit&limit=1',
      )
    ).data.find((each) => each.sub_status === state) ?? null
  const fund = () =>
    callPlatform(home, 'devnet', { command: 'fund', asset: 'ETH', address, amount: '1', tag: null })
  await fund()
  const { source_id: source } = await waitFor('screening: a clean deposit', () =>
    deposit('CREDITED'),
  )
  await callPlatform(home, 'devnet', { command: 'risk', address: source, level: 'SEVERE' })
  await fund()
  const flagged = await waitFor('screening: a flagged deposit', () => deposit('AML_HELD'))
  const wallet = await balanceOf(base, user, 'ETH')
  say(
    `screening: 1 ETH from ${source} is held (${flagged.sub_status}); spendable ${wallet?.balance}, on the chain ${wallet?.omnibus_balance}`,
  )
  await callPlatform(home, 'devnet', { command: 'risk', address: source, level: 'none' })
  await call(base, user, 'POST', '/dac/v1/unfreeze-address', { asset: 'ETH', address: source })
  await waitFor('screening: the released deposit', async () =>
    (await balanceOf(base, user, 'ETH'))?.balance === '2' ? true : null,
  )
  say('screening: unfrozen, and credited; spendable 2')
}

/** Shows a standing rule that forwards incoming coins to the customer automatically. */
async function forwarding(base: string, user: User, customer: User): Promise<void> {
  for (const each of [user, customer])
    await call(base, each, 'POST', '/dac/v1/create-wallet', { asset: 'ETH' }).catch(() => null)
  const { address } = await call<{ address: string }>(base, user, 'POST', '/dac/v1/address', {
    asset: 'ETH',
  })
  const { address: to } = await call<{ address: string }>(
    base,
    customer,
    'POST',
    '/dac/v1/address',
    { asset: 'ETH' },
  )
  const rule = await call<{ id: string }>(base, user, 'POST', '/dac/v1/auto-forwarding', {
    asset: 'ETH',
    min_amount: 1,
    destination_address: to,
    daily_cap: 10,
    expires_at: new Date(Date.now() + 86_400_000).toISOString(),
  })
  await callPlatform(home, 'devnet', {
    command: 'fund',
    asset: 'ETH',
    address,
    amount: '2',
    tag: null,
  })
  const done = await waitFor(
    'forwarding: a forward',
    async () =>
      (
        await call<{ data: Transaction[] }>(
          base,
          user,
          'GET',
          `/dac/v1/auto-forwarding/${rule.id}/history`,
        )
      ).data.find(({ status }) => status === 'confirmed') ?? null,
  )
  say(
    `forwarding: 2 ETH were received and forwarded by rule ${rule.id}: ${done.amount} in ${String(done.hash)}`,
  )
}

/** Shows a stake, and the cooldown of a part of it. */
async function staking(base: string, user: User): Promise<void> {
  await call(base, user, 'POST', '/dac/v1/create-wallet', { asset: 'TRX' })
  const { address } = await call<{ address: string }>(base, user, 'POST', '/dac/v1/address', {
    asset: 'TRX',
  })
  await callPlatform(home, 'devnet', {
    command: 'fund',
    asset: 'TRX',
    address,
    amount: '200',
    tag: null,
  })
  await waitFor('staking: a deposit', async () =>
    (await balanceOf(base, user, 'TRX'))?.balance === '200' ? true : null,
  )
  const ended = async (path: string, amount: number) => {
    const { id } = await call<Transaction>(base, user, 'POST', `/dav/v1/${path}`, {
      asset: 'TRX',
      address,
      resource: 'ENERGY',
      amount,
    })
    return waitFor(`staking: ${path}`, async () => {
      const now = await call<Transaction>(base, user, 'GET', `/dac/v1/transaction/${id}`)
      if (now.status === 'failed')
        throw new Error(`staking: ${path} failed: ${now.failure_reason ?? ''}`)
      return now.status === 'confirmed' ? now : null
    })
  }
  const staked = await ended('stake', 100)
  say(
    `staking: 100 TRX staked for energy by ${String(staked.hash)}; spendable ${(await balanceOf(base, user, 'TRX'))?.balance}`,
  )
  await ended('unstake', 40)
  const { cooling } = await call<{ cooling: { amount: string; release_at: string }[] }>(
    base,
    user,
    'GET',
    `/dav/v1/staking?address=${address}`,
  )
  say(
    `staking: ${cooling[0]?.amount} TRX unstaked, in cooldown until ${cooling[0]?.release_at}; release-unstaked then makes them spendable`,
  )
}

/**
 * Shows an invoice from its charge to its payment; its page can be opened in a browser during this
 * time.
 */
async function charging(base: string, merchant: User): Promise<void> {
  await call(base, merchant, 'POST', '/dac/v1/create-wallet', { asset: 'ETH' })
  const {
    inv_id: id,
    checkout_url: url,
    address,
    crypto_amount: amount,
  } = await call<{
    inv_id: string
    checkout_url: string
    address: string
    crypto_amount: string
  }>(base, merchant, 'POST', '/dac/v1/invoices', {
    fiat: 'USD',
    fiat_amount: 25,
    assets: ['ETH'],
    memo: 'Two hats',
    order_id: '1001',
  })
  say(`invoice: 25 USD charged, ${amount} ETH to ${address}; the payer's page is ${url}`)
  await callPlatform(home, 'devnet', { command: 'fund', asset: 'ETH', address, amount, tag: null })
  const paid = await waitFor('invoice: its payment', async () => {
    const now = await call<{ inv_status: string; payments: { hash: string }[] }>(
      base,
      merchant,
      'GET',
      `/dac/v1/invoices/${id}`,
    )
    return now.inv_status === 'Paid' ? now : null
  })
  say(`invoice: paid by ${paid.payments.map(({ hash }) => hash).join(', ')} and confirmed`)
}

/** Failures of the demo, in the order of their occurrence. */
class Failures {
  readonly messages: string[] = []

  add(error: Error): void {
    this.messages.push(error.message)
  }

  addAndSay(error: Error): void {
    this.add(error)
    say(`FAILED  ${error.message}`)
  }
}

/**
 * Transfers every asset. Assets of one network are processed sequentially, networks concurrently.
 * @returns the successful transfers in the order of the assets
 */
async function transferAssets(
  base: string,
  assets: readonly Asset[],
  { sender, receiver }: { sender: User; receiver: User },
  failures: Failures,
): Promise<TransferResult[]> {
  const networks = [...new Set(assets.map((asset) => asset.network))]
  const results: TransferResult[] = []
  let ended = 0
  await Promise.all(
    networks.map(async (network) => {
      for (const asset of assets.filter((each) => each.network === network)) {
        await transferAsset(base, asset, sender, receiver).then(
          (result) => results.push(result),
          (error: Error) => failures.addAndSay(error),
        )
        say(`${asset.asset_name}: ${++ended} of ${assets.length} assets are done`)
      }
    }),
  )
  const order = new Map(assets.map((asset, at) => [asset.asset_name, at]))
  return results.sort((a, b) => (order.get(a.asset) ?? 0) - (order.get(b.asset) ?? 0))
}

interface PrepaidAccount {
  balance: string
  tier: string
  fees: { percent: string; minimum: string }
  volume_30d: string
}

/** Returns the state of the user's prepaid fee account, in US dollars. */
const prepaidAccount = (base: string, user: User): Promise<PrepaidAccount> =>
  call<PrepaidAccount>(base, user, 'POST', '/dac/v1/prepaid-fee', {})

/**
 * Shows staking, standing rules, invoices and exchanges, each with a user of its own.
 * @param makeDemoUser creates a user of the workspace with this suffix
 */
async function showFunctions(
  base: string,
  customer: User,
  makeDemoUser: (suffix: string) => Promise<User>,
  failures: Failures,
): Promise<void> {
  const add = (error: Error) => failures.add(error)
  await staking(base, await makeDemoUser('-staking')).catch(add)
  await forwarding(base, await makeDemoUser('-forwarding'), customer).catch(add)
  await charging(base, await makeDemoUser('-merchant')).catch(add)
  const desk = await makeDemoUser('-desk')
  await tradeInDemo({
    home,
    say,
    waitFor,
    call: (method, path, body) => call(base, desk, method, path, body),
  }).catch((error: Error) => failures.addAndSay(error))
}

/**
 * Shows all functions, and prints their results.
 * @param isStarted whether the demo has started the platform
 * @returns the exit code
 */
async function showAll(base: string, isStarted: boolean): Promise<number> {
  const keyFile = join(home, 'demo', 'key.pem')
  mkdirSync(dirname(keyFile), { recursive: true, mode: 0o700 })
  // Each run uses its own workspaces, so that the demo can be repeated with one data folder.
  const run = Date.now().toString(36)
  const makeDemoUser = (suffix: string) => makeUser(`demo-${run}${suffix}`, keyFile)
  const failures = new Failures()
  const sender = await makeDemoUser('')
  const receiver = await makeDemoUser('-customer')
  const assets = await call<Asset[]>(base, null, 'GET', '/assets')
  say(`assets: ${assets.map((asset) => asset.asset_name).join(', ')}`)
  const paidIn = await prepaidAccount(base, sender)
  const { percent, minimum } = paidIn.fees
  say(
    `prepaid fee account: ${paidIn.balance} USD; ${paidIn.tier}: ${percent} % of a transfer, at least ${minimum} USD`,
  )
  const results = await transferAssets(base, assets, { sender, receiver }, failures)
  await screening(base, await makeDemoUser('-screened')).catch((error: Error) =>
    failures.add(error),
  )
  const left = await prepaidAccount(base, sender)
  say(
    `prepaid fee account: ${left.balance} USD left of ${paidIn.balance}, for transfers worth ${left.volume_30d} USD`,
  )
  await showFunctions(base, receiver, makeDemoUser, failures)
  say('comparing the ledger with the chains and the exchanges')
  const audit = (await callPlatform(home, 'audit', {})) as { ok: boolean; differences: unknown[] }
  if (!audit.ok) failures.messages.push(`audit: ${JSON.stringify(audit.differences)}`)
  process.stdout.write(transferTable(results, SEND))
  process.stdout.write(summary(results.length, failures.messages))
  const user = { apiKey: sender.apiKey, keyFile: relative(process.cwd(), keyFile) }
  process.stdout.write(nextSteps(user, isStarted))
  return failures.messages.length === 0 ? 0 : 1
}

/** Runs the demo, and ends the platform if the demo has started it. */
async function demo(): Promise<number> {
  const { base, child } = await platform()
  try {
    return await showAll(base, child !== null)
  } finally {
    if (child && child.exitCode === null) {
      child.kill('SIGTERM')
      await new Promise((done) => child.once('exit', done))
    }
  }
}

process.exitCode = await demo().catch((error: unknown) => {
  process.stderr.write(`demo: ${manyLines(reasonOf(error))}\n`)
  return 1
})
