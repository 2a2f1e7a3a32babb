import { requestHeaders, requestSigner, type RequestSigner } from '@custody/request-auth/web'
import { ownKeys, type OwnKey } from './own-keys.ts'

/** Scalar's own script, which is loaded before this one. */
declare const Scalar: { createApiReference(at: string, configuration: object): unknown }

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

const at = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T

let signing: { apiKey: string; sign: RequestSigner } | null = null
let own: OwnKey[] = []

/** Signs exactly the request that is about to be sent, and only requests to this platform. */
async function sign(request: Request): Promise<void> {
  const url = new URL(request.url)
  if (signing === null || url.origin !== location.origin) return
  const { apiKey, sign: signed } = signing
  const body = await request.clone().text()
  const token = await signed({
    apiKey,
    method: request.method,
    uri: `${url.pathname}${url.search}`,
    body,
  })
  for (const [name, value] of Object.entries(requestHeaders(token, apiKey)))
    request.headers.set(name, value)
}

function show(): void {
  at('signer').textContent =
    signing === null ? 'Requests are not signed' : `Signing as ${signing.apiKey.slice(0, 8)}…`
  at('choose').textContent = signing === null ? 'Sign requests' : 'Change key'
}

/**
 * Returns the API key and the signer of the selected private key.
 * @throws Error that describes the invalid input
 */
function chosen(
  apiKey: string,
  ownKey: string,
  pem: string,
): { apiKey: string; sign: RequestSigner } {
  if (!UUID.test(apiKey))
    throw new Error('The API key is a UUID, as the operator or the control panel shows it.')
  const key = own.find(({ fingerprint }) => fingerprint === ownKey)?.private_key
  if (!key && pem.trim() === '')
    throw new Error('Choose a key of this browser, or paste a private key.')
  try {
    return { apiKey, sign: requestSigner(key ?? pem) }
  } catch (error) {
    throw new Error(`The private key ${(error as Error).message}.`, { cause: error })
  }
}

async function ask(): Promise<void> {
  own = await ownKeys()
  const select = at<HTMLSelectElement>('own-key')
  const options = own.map(
    ({ fingerprint, workspace, sub_account: name }) =>
      new Option(`${workspace} / ${name} – ${fingerprint.slice(0, 12)}`, fingerprint),
  )
  select.replaceChildren(new Option('Paste another one below', ''), ...options)
  at('own').hidden = own.length === 0
  at('problem').textContent = ''
  at<HTMLDialogElement>('keys').showModal()
}

at('choose').addEventListener('click', () => void ask())
at('forget').addEventListener('click', () => {
  signing = null
  at<HTMLTextAreaElement>('pem').value = ''
  at<HTMLDialogElement>('keys').close()
  show()
})
at('keys-form').addEventListener('submit', (event) => {
  event.preventDefault()
  const pem = at<HTMLTextAreaElement>('pem')
  try {
    signing = chosen(
      at<HTMLInputElement>('api-key').value.trim(),
      at<HTMLSelectElement>('own-key').value,
      pem.value,
    )
    pem.value = ''
    at<HTMLDialogElement>('keys').close()
    show()
  } catch (error) {
    at('problem').textContent = (error as Error).message
  }
})

Scalar.createApiReference('#reference', {
  url: '/openapi.json',
  // The origin of this page, whatever name the installation has.
  servers: [{ url: location.origin }],
  theme: 'none',
  withDefaultFonts: false,
  telemetry: false,
  proxyUrl: '',
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
  persistAuth: false,
  documentDownloadType: 'none',
  operationTitleSource: 'summary',
  onRequestBuilt: ({ request }: { request: Request }) => sign(request),
})
