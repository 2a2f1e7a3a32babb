// The browser's own API keys: RSA-4096 pairs whose private half was generated here, cannot be
// exported, and is stored in IndexedDB.

/** A key pair of this browser for one sub-account. */
export interface BrowserKey {
  /** Lower-case hex SHA-256 of the public key's DER. */
  fingerprint: string
  workspace: string
  sub_account: string
  public_key_pem: string
  private_key: CryptoKey
  created_at: string
}

const ALGORITHM = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
const STORE = 'keys'

const done = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.addEventListener('success', () => resolve(request.result))
    request.addEventListener('error', () =>
      reject(request.error ?? new Error('the browser’s store refuses')),
    )
  })

async function store(mode: IDBTransactionMode): Promise<IDBObjectStore> {
  const opening = indexedDB.open('custody-console', 1)
  opening.addEventListener('upgradeneeded', () =>
    opening.result.createObjectStore(STORE, { keyPath: 'fingerprint' }),
  )
  return (await done(opening)).transaction(STORE, mode).objectStore(STORE)
}

/** Returns all pairs of this browser. */
export const listKeys = async (): Promise<BrowserKey[]> =>
  done((await store('readonly')).getAll() as IDBRequest<BrowserKey[]>)

/** Deletes a pair permanently. */
export async function forgetKey(fingerprint: string): Promise<void> {
  await done((await store('readwrite')).delete(fingerprint))
}

const hex = (bytes: ArrayBuffer) =>
  Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('')
const base64 = (bytes: Uint8Array) =>
  btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))

/**
 * Computes SHA-256.
 * @returns lower-case hex, as signer nodes and the command line print it
 */
export const sha256 = async (data: BufferSource | string): Promise<string> =>
  hex(
    await crypto.subtle.digest(
      'SHA-256',
      typeof data === 'string' ? new TextEncoder().encode(data) : data,
    ),
  )

/**
 * Reads a public key.
 * @throws DOMException if the text is not a public RSA key
 */
export async function readPublicKey(
  pem: string,
): Promise<{ key: CryptoKey; fingerprint: string; bits: number }> {
  const inner = /^-----BEGIN PUBLIC KEY-----([\sA-Za-z0-9+/=]+)-----END PUBLIC KEY-----$/.exec(
    pem.trim(),
  )?.[1]
  if (inner === undefined) throw new TypeError('not one PEM block "BEGIN PUBLIC KEY"')
  const der = Uint8Array.from(atob(inner.replaceAll(/\s/g, '')), (char) => char.charCodeAt(0))
  const key = await crypto.subtle.importKey('spki', der, ALGORITHM, true, ['verify'])
  return {
    key,
    fingerprint: await sha256(der),
    bits: (key.algorithm as RsaHashedKeyAlgorithm).modulusLength,
  }
}

const PARAMETERS = { ...ALGORITHM, modulusLength: 4096, publicExponent: new Uint8Array([1, 0, 1]) }

function pemOf(what: 'PUBLIC' | 'PRIVATE', der: Uint8Array): string {
  const lines = base64(der).match(/.{1,64}/g) ?? []
  return `-----BEGIN ${what} KEY-----\n${lines.join('\n')}\n-----END ${what} KEY-----\n`
}

/** Generates a pair for a machine. The private half is written to a file, and not stored here. */
export async function makeExportableKey(): Promise<{
  public_key_pem: string
  private_key_pem: string
}> {
  const pair = await crypto.subtle.generateKey(PARAMETERS, true, ['sign', 'verify'])
  const [spki, pkcs8] = await Promise.all([
    crypto.subtle.exportKey('spki', pair.publicKey),
    crypto.subtle.exportKey('pkcs8', pair.privateKey),
  ])
  return {
    public_key_pem: pemOf('PUBLIC', new Uint8Array(spki)),
    private_key_pem: pemOf('PRIVATE', new Uint8Array(pkcs8)),
  }
}

/** Generates a pair and stores it. Takes a second or two. */
export async function makeKey(workspace: string, subAccount: string): Promise<BrowserKey> {
  const pair = await crypto.subtle.generateKey(PARAMETERS, false, ['sign', 'verify'])
  const der = new Uint8Array(await crypto.subtle.exportKey('spki', pair.publicKey))
  const key: BrowserKey = {
    fingerprint: await sha256(der),
    workspace,
    sub_account: subAccount,
    public_key_pem: pemOf('PUBLIC', der),
    private_key: pair.privateKey,
    created_at: new Date().toISOString(),
  }
  await done((await store('readwrite')).put(key))
  // Otherwise the browser may delete it when storage is low.
  await navigator.storage?.persist?.().catch(() => false)
  return key
}
