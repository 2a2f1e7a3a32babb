// A compliance service: approves small transfers to known payees by a key of its own, and leaves all
// others to people. It signs nothing that it has not verified with the trust file, its own copy of
// the policy document and the public keys of the callers whose requests it accepts.
import { readFileSync } from 'node:fs'
import { CustodyClient, CustodyError } from '@custody/client'
import { ApprovalError, keySigner } from '@custody/client/approvals'

const {
  CUSTODY_URL = 'http://127.0.0.1:8080',
  CUSTODY_API_KEY = '',
  CUSTODY_KEY = 'my-key.pem',
  TRUST = 'trust.json',
  POLICY = 'policy.json',
  SIGNING_KEY = 'compliance.pem',
  // {"API-KEY": "-----BEGIN PUBLIC KEY-----…"}
  CALLERS = 'callers.json',
  // [{"asset": "ETH", "to": "0x…", "tag": null, "max": "600000000000000000"}], in the smallest unit
  PAYEES = 'payees.json',
} = process.env
const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'))
const custody = new CustodyClient({
  baseUrl: CUSTODY_URL,
  apiKey: CUSTODY_API_KEY,
  privateKey: readFileSync(CUSTODY_KEY, 'utf8'),
  trust: readJson(TRUST),
})
const documents = [readFileSync(POLICY, 'utf8')]
const callers = readJson(CALLERS)
const signer = keySigner(readFileSync(SIGNING_KEY, 'utf8'))
const payees = readJson(PAYEES)

/** Returns whether the service may approve it. A forwarding rule or refund is left to people. */
const isKnown = ({ action, facts }) =>
  action === 'transfer' &&
  payees.some(
    ({ asset, to, tag, max }) =>
      facts.asset === asset &&
      facts.to === to &&
      facts.tag === tag &&
      BigInt(facts.amount) <= BigInt(max),
  )

async function decide(id) {
  const transfer = await custody.approvals.verify(id, { documents, callers })
  if (transfer.state !== 'open') return
  if (!isKnown(transfer)) {
    console.log(`${id} is left to people: ${transfer.sentences[0]}`)
    return
  }
  const { state } = await custody.approvals.approve(transfer, signer)
  console.log(`${id} is ${state}: ${transfer.sentences[0]}`)
}

let after
do {
  const page = await custody.approvals.list({ state: 'open', after })
  for (const { id } of page.data.filter(({ action }) => action !== 'policy_change')) {
    try {
      await decide(id)
    } catch (error) {
      if (!(error instanceof ApprovalError || error instanceof CustodyError)) throw error
      // Something must not be signed, or was not accepted: inform the operator, and continue.
      console.error(`${id}: ${error.code}: ${error.message}`)
      process.exitCode = 1
    }
  }
  after = page.next ?? undefined
} while (after !== undefined)
