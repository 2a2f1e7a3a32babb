// Tests of coins with CashTokens in the control panel: the wallet's page lists them with their
// tokens, only if the wallet has such coins.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { AsideCoin } from '@custody/chains'
import type { Browser, Page } from 'playwright-core'
import pino from 'pino'
import { startBrowser } from '../../../testing/browser.ts'
import { consolePages } from '../src/console-api/console/pages.ts'
import { findAside, recordAside } from '../src/custody/deposits/coins-aside.ts'
import { useApi } from '../testing/api-support.ts'
import { look, Visitor } from '../testing/console-browser.ts'
import { join } from '../testing/console-fixture.ts'
import { call, type User } from '../testing/harness.ts'

const api = useApi({}, consolePages(pino({ level: 'silent' })))
let browser: Browser
let visitor: Visitor
let page: Page
let origin = ''
let user: User

before(async () => {
  await api.started
  const acme = await api.user('acme')
  user = acme
  for (const asset of ['BCH', 'BTC'])
    assert.equal((await call(user, 'POST', '/dac/v1/create-wallet', { asset })).status, 200)
  const owner = await join(api, acme.workspaceId, 'owner')
  browser = await startBrowser()
  origin = owner.browser.origin
  visitor = new Visitor(browser, origin)
  const opened = await visitor.open()
  page = opened.page
  const [name = '', ...value] = owner.browser.cookie.split('=')
  await opened.context.addCookies([{ name, value: value.join('='), url: origin }])
})
after(async () => {
  await browser?.close()
})

const wallet = async (asset: string) => {
  const read = page.waitForResponse((response) => response.url().includes('/dac/v1/coins-aside'))
  await page.goto(`${origin}/console/w/acme/main/wallets/${asset}`)
  assert.equal((await read).status(), 200)
  await page.getByText('Latest transactions').waitFor()
}
const table = () => page.getByRole('region', { name: 'Coins that are kept apart' })

test('the wallet page has a table of excluded coins only if there are any', async () => {
  await wallet('BCH')
  assert.equal(await table().count(), 0)
  const {
    body: [own],
  } = await call<{ omnibus_address: string }[]>(user, 'GET', '/dac/v1/wallets?asset=BCH')
  const coin = {
    txid: 'ab'.repeat(32),
    address: own!.omnibus_address,
    amount: 1000n,
    reason: 'CASH_TOKENS',
  } as const
  const aside: AsideCoin[] = [
    {
      ...coin,
      vout: 0,
      token: { category: 'cd'.repeat(32), amount: '9223372036854775807', nft: null },
    },
    {
      ...coin,
      vout: 1,
      token: {
        category: 'ce'.repeat(32),
        amount: '0',
        nft: { capability: 'minting', commitment: 'abcd' },
      },
    },
    { ...coin, vout: 2, token: null },
  ]
  const network = api.services.registry.network('BCH')!
  const block = { height: 5, hash: 'block 5', parent: '', txids: [coin.txid], transfers: [], aside }
  const [result = []] = await findAside(api.database, network, [block], (addresses) => [
    ...addresses,
  ])
  await api.database.transaction((tx) => recordAside(api.services, tx, network, block, result))
  await wallet('BCH')
  await table().waitFor()
  const text = (await table().innerText()).replaceAll(/\s+/g, ' ')
  for (const part of ['0.00001 BCH', '9,223,372,036,854,775,807', 'minting', 'not known'])
    assert.ok(text.includes(part), text)
  await page.getByText('Their coins are excluded from the balance and are not spent.').waitFor()
  await look(page, 'the wallet with coins that are kept apart')
  await wallet('BTC')
  assert.equal(await table().count(), 0)
  assert.deepEqual(visitor.problems, [])
})
