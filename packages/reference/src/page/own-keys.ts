/** A key that the control panel generated in this browser; its private half cannot be exported. */
export interface OwnKey {
  fingerprint: string
  workspace: string
  sub_account: string
  private_key: CryptoKey
}

const DATABASE = 'custody-console'
const STORE = 'keys'

const done = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.addEventListener('success', () => resolve(request.result))
    request.addEventListener('error', () =>
      reject(request.error ?? new Error('the browser’s store refuses')),
    )
  })

/** Returns the keys that the control panel generated here; an empty list if it was never used. */
export async function ownKeys(): Promise<OwnKey[]> {
  try {
    const opening = indexedDB.open(DATABASE)
    // Only the panel creates the database; an empty one from here would conflict with it.
    opening.addEventListener('upgradeneeded', () => opening.transaction?.abort())
    const database = await done(opening)
    const keys = await done(
      database.transaction(STORE, 'readonly').objectStore(STORE).getAll() as IDBRequest<OwnKey[]>,
    )
    database.close()
    return keys
  } catch {
    return []
  }
}
