// Tests of retired and deprecated mainnet assets in the control panel: the wallet explains why it
// creates no new address, and can still send.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import pino from 'pino'
import { startBrowser } from '../../../testing/browser.ts'
import { consolePages } from '../src/console-api/console/pages.ts'
import { useApi } from '../testing/api-support.ts'
import { look, Visitor } from '../testing/console-browser.ts'
import { join } from '../testing/console-fixture.ts'
import { call } from '../testing/harness.ts'

const api = useApi(
  { network: 'mainnet', allowDeprecated: new Set() },
  consolePages(pino({ level: 'silent' })),
)
let browser: Browser
let visitor: Visitor
let page: Page
let origin = ''

before(async () => {
  await api.started
  const user = await api.user('acme')
  for (const asset of ['ONE', 'USDC_TRX'])
    await api.database.query(
      'insert into wallets (workspace_id, sub_account_id, asset, network) values ($1, $2, $3, $4)',
      [user.workspaceId, user.subAccountId, asset, api.services.registry.asset(asset)?.network],
    )
  for (const asset of ['BTC', 'USDC_BSC'])
    assert.equal((await call(user, 'POST', '/dac/v1/create-wallet', { asset })).status, 200)
  const owner = await join(api, user.workspaceId, 'owner')
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
  await page.goto(`${origin}/console/w/acme/main/wallets/${asset}`)
  await page.getByRole('link', { name: 'Send', exact: true }).first().waitFor()
}
const newAddress = () => page.getByRole('button', { name: 'New address', exact: true }).count()

test('the wallet page of a closed asset explains why the asset has no new addresses', async () => {
  await wallet('USDC_TRX')
  await page
    .getByText('USDC_TRX is deprecated since 2024-02-21: Circle no longer issues USDC on Tron')
    .waitFor()
  assert.equal(await newAddress(), 0)
  await look(page, 'the wallet of a deprecated asset')
  await wallet('ONE')
  await page
    .getByText('ONE is retired since 2026-09-10: Harmony stopped producing blocks')
    .waitFor()
  assert.equal(await newAddress(), 0)
  await wallet('USDC_BSC')
  await page.getByText('bridged by Binance (Binance-Peg)').waitFor()
  assert.ok((await newAddress()) > 0)
  assert.deepEqual(visitor.problems, [])
})

test('the page refuses a new wallet of a closed asset, and marks bridged tokens', async () => {
  await page.goto(`${origin}/console/w/acme/main/wallets?new=`)
  const choice = page.getByRole('dialog').getByRole('combobox', { name: 'Asset' })
  await choice.waitFor()
  const options = await choice.locator('option').allInnerTexts()
  assert.ok(options.includes('Tether USD (USDT) on BSC, bridged'), options.join('\n'))
  assert.ok(options.includes('USD Coin (native) (USDCN) on CRO'), options.join('\n'))
  assert.deepEqual(
    options.filter((each) => /Fantom|^ONE|USDC\) on TRX|USDC\) on CRO|USDT\) on OP_ETH/.test(each)),
    [],
  )
})
