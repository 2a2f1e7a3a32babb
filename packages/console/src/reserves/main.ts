// The public page of published reserves. The client's own code checks a proof here, and the input
// does not leave the browser.
import {
  verifyReserves,
  type PublishedStatement,
  type ReservesProof,
  type Statement,
} from '@custody/client/verify-reserves'

type Trust = NonNullable<Parameters<typeof verifyReserves>[0]['trust']>

const at = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T
let published: PublishedStatement | null = null

/** Formats an integer of the smallest unit as a decimal. */
function shown(amount: string, decimals: number): string {
  const text = amount.padStart(decimals + 1, '0')
  const fraction = decimals === 0 ? '' : text.slice(-decimals).replace(/0+$/, '')
  return `${text.slice(0, text.length - decimals)}${fraction === '' ? '' : `.${fraction}`}`
}

/** Rounded down: 99.999 is never displayed as 100. */
function covered({ held, operating, owed }: Statement['assets'][number]): string {
  if (owed === '0') return '–'
  const beside = BigInt(held) - BigInt(operating)
  const hundredths = beside < 0n ? 0n : (beside * 10_000n) / BigInt(owed)
  return `${hundredths / 100n}.${String(hundredths % 100n).padStart(2, '0')} %`
}

async function get<T>(path: string): Promise<T> {
  const answer = await fetch(path)
  if (!answer.ok)
    throw new Error(
      answer.status === 404
        ? 'Nothing is shown here without a key.'
        : `The server answered ${answer.status}.`,
    )
  return (await answer.json()) as T
}

function row(each: Statement['assets'][number], isShort: boolean): HTMLTableRowElement {
  const line = document.createElement('tr')
  const amounts = [each.held, each.operating, each.owed].map((amount) =>
    shown(amount, each.decimals),
  )
  for (const text of [each.asset, ...amounts, covered(each)]) line.insertCell().textContent = text
  if (isShort) line.className = 'short'
  return line
}

async function show(id: string): Promise<void> {
  published = null
  at('verdict').hidden = true
  published = await get<PublishedStatement>(`/reserves/${encodeURIComponent(id)}.json`)
  const { statement, hash, short } = await verifyReserves({ published })
  const words =
    short.length > 0
      ? ` According to the statement, liabilities exceed reserves in ${short.join(', ')}.`
      : ''
  at('about').textContent =
    `Of ${statement.time}. SHA-256 ${hash}: compare it with what others see.${words}`
  const table = at<HTMLTableElement>('assets')
  table.tBodies[0]?.replaceChildren(
    ...statement.assets.map((each) => row(each, short.includes(each.asset))),
  )
  table.hidden = false
}

function read<T>(id: string, what: string): T | undefined {
  const text = at<HTMLTextAreaElement>(id).value.trim()
  if (text === '') return undefined
  try {
    const value = JSON.parse(text) as { status?: unknown; body?: unknown }
    // The output of `custody request … --json`.
    return (value.status !== undefined && value.body !== undefined ? value.body : value) as T
  } catch (error) {
    throw new Error(`${what} is not JSON.`, { cause: error })
  }
}

async function check(): Promise<string> {
  const proof = read<ReservesProof>('proof', 'The proof')
  const trust = read<Trust>('trust', 'The trust file')
  if (!published) throw new Error('There is no statement against which it can be verified.')
  if (!proof) throw new Error('Paste your proof first.')
  const result = await verifyReserves({ published, proof, trust })
  const owed = result.proven
    .map(({ asset, decimals, balance }) => `${shown(balance, decimals)} ${asset}`)
    .join(', ')
  const signed =
    result.signed_by === null
      ? 'No signature was verified, because there is no trust file.'
      : `Signed by signer nodes ${result.signed_by.join(', ')}.`
  const counted =
    owed === ''
      ? 'The statement includes no balance of your sub-account.'
      : `The statement includes your balance of ${owed}. Compare this with your own records.`
  return `${counted} ${signed}`
}

const showVerdict = (text: string, isGood: boolean): void => {
  at('verdict').textContent = text
  at('verdict').className = isGood ? 'good' : 'bad'
  at('verdict').hidden = false
}
const failed = (error: unknown): void => {
  at('about').textContent = (error as Error).message
}

at('check').addEventListener('submit', (event) => {
  event.preventDefault()
  check().then(
    (text) => showVerdict(text, true),
    (error: unknown) => showVerdict(`The verification failed: ${(error as Error).message}`, false),
  )
})
for (const id of ['proof', 'trust']) {
  at<HTMLInputElement>(`${id}-file`).addEventListener('change', ({ target }) => {
    const [file] = (target as HTMLInputElement).files ?? []
    void file?.text().then((text) => {
      at<HTMLTextAreaElement>(id).value = text
    })
  })
}
const select = at<HTMLSelectElement>('statements')
select.addEventListener('change', () => void show(select.value).catch(failed))
get<{ statements: { id: string; created_at: string }[] }>('/reserves/index.json')
  .then(async ({ statements }) => {
    select.replaceChildren(
      ...statements.map(({ id, created_at: time }) => new Option(`${time} – ${id}`, id)),
    )
    if (statements[0]) await show(statements[0].id)
    else at('about').textContent = 'No statement has been published yet.'
  })
  .catch(failed)
