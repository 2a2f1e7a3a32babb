import {
  address,
  appendTransactionMessageInstructions,
  blockhash as asBlockhash,
  createAddressWithSeed,
  createKeyPairSignerFromPrivateKeyBytes,
  createTransactionMessage,
  getBase64EncodedWireTransaction,
  pipe,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
  type Address,
} from '@solana/kit'
import { getCreateAccountWithSeedInstruction } from '@solana-program/system'
import { getInitializeAccount3Instruction, getMintToInstruction } from '@solana-program/token'
import { FAUCET_KEY, TOKEN_PROGRAM } from '../src/solana/genesis.ts'

const ACCOUNT_BYTES = 165
const ACCOUNT_RENT = 2_039_280n

/**
 * Pays tokens into a token account of an owner that is not the associated one. Anyone can create
 * such an account without the owner.
 * @param seed name of the account: the same seed pays into the same account
 * @param isNew whether the account is created first
 * @returns signature of the transaction, and the address of the account
 */
export async function payIntoOtherAccount(
  url: string,
  o: { owner: string; mint: string; units: bigint; seed: string; isNew: boolean },
): Promise<{ hash: string; account: string }> {
  const call = async <T>(method: string, ...params: unknown[]): Promise<T> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const answer = (await (
      await fetch(`${url}/sol`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      })
    ).json()) as { result?: T; error?: { message: string } }
    if (answer.result === undefined) throw new Error(answer.error?.message ?? 'no result')
    return answer.result
  }
  const faucet = await createKeyPairSignerFromPrivateKeyBytes(FAUCET_KEY)
  const mint = address(o.mint)
  const account = await createAddressWithSeed({
    baseAddress: faucet.address,
    seed: o.seed,
    programAddress: TOKEN_PROGRAM as Address,
  })
  const { value } = await call<{ value: { blockhash: string; lastValidBlockHeight: number } }>(
    'getLatestBlockhash',
  )
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (m) => setTransactionMessageFeePayerSigner(faucet, m),
    (m) =>
      setTransactionMessageLifetimeUsingBlockhash(
        {
          blockhash: asBlockhash(value.blockhash),
          lastValidBlockHeight: BigInt(value.lastValidBlockHeight),
        },
        m,
      ),
    (m) =>
      appendTransactionMessageInstructions(
        [
          ...(o.isNew
            ? [
                getCreateAccountWithSeedInstruction({
                  payer: faucet,
                  newAccount: account,
                  baseAccount: faucet,
                  base: faucet.address,
                  seed: o.seed,
                  amount: ACCOUNT_RENT,
                  space: ACCOUNT_BYTES,
                  programAddress: TOKEN_PROGRAM as Address,
                }),
                getInitializeAccount3Instruction({ account, mint, owner: address(o.owner) }),
              ]
            : []),
          getMintToInstruction({ mint, token: account, mintAuthority: faucet, amount: o.units }),
        ],
        m,
      ),
  )
  const signed = await signTransactionMessageWithSigners(message)
  const hash = await call<string>(
    'sendTransaction',
    getBase64EncodedWireTransaction(
      signed as Parameters<typeof getBase64EncodedWireTransaction>[0],
    ),
    { encoding: 'base64' },
  )
  return { hash, account }
}
