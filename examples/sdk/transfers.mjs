// Pays once, waits for the end, and lists what else was paid: CUSTODY_URL, CUSTODY_API_KEY and
// CUSTODY_KEY (a PEM file) say where.
import { readFileSync } from 'node:fs'
import { CustodyClient, CustodyError } from '@custody/client'

const {
  CUSTODY_URL = 'http://127.0.0.1:8080',
  CUSTODY_API_KEY = '',
  CUSTODY_KEY = 'my-key.pem',
} = process.env
const custody = new CustodyClient({
  baseUrl: CUSTODY_URL,
  apiKey: CUSTODY_API_KEY,
  privateKey: readFileSync(CUSTODY_KEY, 'utf8'),
})

const [asset = 'ETH', amount = '0.05', destination = '0x52908400098527886E0F7030069857D2E4169EE7'] =
  process.argv.slice(2)
try {
  // The same line run twice pays once: the service knows the sequence_id. With another amount it
  // throws IdempotencyMismatch.
  const { id } = await custody.createTransaction({
    asset,
    amount,
    destination_address: destination,
    sequence_id: 'example-1',
  })
  const done = await custody.waitForTransaction(id)
  console.log(
    `${done.status} ${done.amount} ${done.asset}, fee ${done.fee} ${done.fee_asset}, ${done.hash}`,
  )
  for await (const each of custody.eachTransaction({ asset, type: 'Withdraw' }))
    console.log(`${each.created_at} ${each.amount} ${each.status}`)
} catch (error) {
  if (!(error instanceof CustodyError)) throw error
  console.error(`${error.code}: ${error.message} (${error.requestId})`)
  process.exitCode = 1
}
