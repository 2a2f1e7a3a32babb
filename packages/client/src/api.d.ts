// Made by scripts/api-types.mjs.
// document 4c370491119e779469e161e3fe662bec9e250bf4b43b65e3dbf646731f370ead
// types 6919deb7ae73322d72191c071ac0c3144f1160acc904f48e7995ba6e9d9e840c
/** Digits with a decimal point at most, such as `0.5`: a double cannot hold 18 decimals. */
export type Decimal = string;
export interface components {
    schemas: {
        Address: {
            id: string;
            asset: string;
            address: string;
            address_tag: string | null;
            label: string | null;
            /** @description Payment URI for a QR code: BIP21, EIP-681, Solana Pay, SEP-7, CIP-13, xrpl:; null if there is no common format (TRX) */
            payment_uri: string | null;
            /** @description Derivation path [sub-account, chain, index], not hardened, relative to the key in GET /dac/v1/keys */
            path: number[];
            /** Format: date-time */
            created_at: string;
        };
        AddressPage: {
            data: components["schemas"]["Address"][];
            /** @description Cursor of the next page: pass it as `after`; null on the last page */
            next: string | null;
            /** @description Whether there are more records */
            has_more: boolean;
        };
        AddressRelease: {
            asset: string;
            address: string;
            address_tag: string | null;
            /** Format: date-time */
            unfrozen_at: string;
        };
        AddressValidation: {
            valid: boolean;
            reason?: string;
            /** @description The address as transactions list it (`destination_id`), present if the request spells it differently */
            address?: string;
            /** @description Tag that a payment would carry: the one in the request, or the one inside an X-address; null: none */
            address_tag?: string | null;
            /** @description false: the address contains its tag, or states that it has none (X-address, M…), and accepts no other */
            takes_tag?: boolean;
            /** @description true: the account rejects payments without a tag; null: its chain did not respond within two seconds */
            requires_tag?: boolean | null;
        };
        AmlSettings: {
            provider: string;
            /** @description The token, masked */
            aml_token: string;
            aml_risk_levels: string;
            aml_deposit: boolean;
            aml_withdrawal: boolean;
            /** Format: decimal */
            aml_unknown_sender_usd: Decimal;
            /** Format: date-time */
            updated_at: string;
            /** @description Warning, present if a level passes although a lower level is held; otherwise null */
            warning: string | null;
        };
        Approval: {
            /** @description ID of the transfer, the forwarding rule or the policy change */
            id: string;
            /**
             * @description `ended`: the transfer was cancelled, or failed for another reason, before it was decided; the forwarding rule was deleted, expired, or no longer requires approvals; a policy change ended for another reason than its approvals
             * @enum {string}
             */
            state: "open" | "approved" | "rejected" | "expired" | "ended";
            /** @enum {string} */
            action: "transfer" | "refund" | "stake" | "forward" | "policy_change";
            /** @description null: it is a policy change */
            facts: components["schemas"]["ApprovalFacts"] | null;
            change?: components["schemas"]["ApprovalChange"];
            needs: components["schemas"]["ApprovalNeed"][];
            have: components["schemas"]["ApprovalDecision"][];
            /** @description Memo of the transfer; absent if it has none. The signer nodes do not verify it, and no approval signs it */
            memo?: string;
            requested_by?: components["schemas"]["ApprovalRequester"];
            /** Format: date-time */
            created_at: string;
            /**
             * Format: date-time
             * @description If it is not approved by then, the transfer fails and a new forwarding rule ends with `APPROVAL_EXPIRED`, and a policy change expires
             */
            expires_at: string;
        };
        /** @description The proposed policy document; absent for a transfer. `GET /dac/v1/policy/changes/{id}` returns it */
        ApprovalChange: {
            number: number;
            hash: string;
            comment: string;
            /** @description New keys whose holders have not proved that they hold them */
            missing: components["schemas"]["PolicyKey"][];
        };
        /**
         * @example {
         *       "by": "bob",
         *       "key": "k1",
         *       "decision": "approve",
         *       "at": 1795600000,
         *       "expires": 1795686400,
         *       "signature": "kq3mT0bPzV7m0cB7aF2r1sXo9pQeYw8uG5hJ4nL6dKcRtZvM1iN0oPxS3fUyE2aWgHjB7kQ9lDzC5vXbN8mTAw=="
         *     }
         */
        ApprovalDecision: {
            /** @description ID of the person in the policy document */
            by: string;
            /** @description ID of the key of that person */
            key: string;
            /** @enum {string} */
            decision: "approve" | "reject";
            /** @description Time of the signature, in Unix seconds */
            at: number;
            /** @description Time at which it stops counting, in Unix seconds */
            expires: number;
            /** @description Base64 of 64 bytes, by a key that signs itself; absent for a passkey */
            signature?: string;
            passkey?: components["schemas"]["PasskeyAssertion"];
        };
        ApprovalDetail: {
            /** @description ID of the transfer, the forwarding rule or the policy change */
            id: string;
            /**
             * @description `ended`: the transfer was cancelled, or failed for another reason, before it was decided; the forwarding rule was deleted, expired, or no longer requires approvals; a policy change ended for another reason than its approvals
             * @enum {string}
             */
            state: "open" | "approved" | "rejected" | "expired" | "ended";
            /** @enum {string} */
            action: "transfer" | "refund" | "stake" | "forward" | "policy_change";
            /** @description null: it is a policy change */
            facts: components["schemas"]["ApprovalFacts"] | null;
            change?: components["schemas"]["ApprovalChange"];
            needs: components["schemas"]["ApprovalNeed"][];
            have: components["schemas"]["ApprovalDecision"][];
            /** @description Memo of the transfer; absent if it has none. The signer nodes do not verify it, and no approval signs it */
            memo?: string;
            requested_by?: components["schemas"]["ApprovalRequester"];
            /** Format: date-time */
            created_at: string;
            /**
             * Format: date-time
             * @description If it is not approved by then, the transfer fails and a new forwarding rule ends with `APPROVAL_EXPIRED`, and a policy change expires
             */
            expires_at: string;
            /** @description Network fee that the platform plans for the transfer, in the smallest unit of `facts.fee_asset`, as digits; absent for a forwarding rule and a policy change. It is not part of what an approval signs: the signer nodes permit any fee up to `facts.fee_max` */
            planned_fee?: string;
            statement: components["schemas"]["ApprovalStatement"] | components["schemas"]["PolicyChangeStatement"];
            /** @description The signed request of the caller, from which an approver can derive the facts again; absent for a policy change */
            request?: {
                token: string;
                method: string;
                uri: string;
                body: string;
            };
        };
        /**
         * @description Amounts are in the smallest unit, as digits. `contract` is null for a native coin; `fee_max` is the largest fee that any transaction of the transfer may have. A forwarding rule has its limits in `standing`, and `amount` and `fee_max` are null.
         * @example {
         *       "sub_account": "main",
         *       "asset": "ETH",
         *       "network": "ETH",
         *       "contract": null,
         *       "decimals": 18,
         *       "amount": "600000000000000000",
         *       "to": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
         *       "tag": null,
         *       "fee_asset": "ETH",
         *       "fee_decimals": 18,
         *       "fee_max": "100000000000000000",
         *       "standing": null,
         *       "resource": null
         *     }
         */
        ApprovalFacts: {
            sub_account: string;
            asset: string;
            network: string;
            contract: string | null;
            decimals: number;
            /** @example 600000000000000000 */
            amount: string | null;
            to: string;
            tag: string | null;
            fee_asset: string;
            fee_decimals: number;
            /** @example 600000000000000000 */
            fee_max: string | null;
            standing: {
                /** @example 600000000000000000 */
                min_amount: string;
                /** @example 600000000000000000 */
                daily_cap: string;
                ends_at: number;
            } | null;
            resource: ("ENERGY" | "BANDWIDTH") | null;
        };
        /**
         * @example {
         *       "group": "treasury",
         *       "k": 2,
         *       "have": 1
         *     }
         */
        ApprovalNeed: {
            /** @description Group of the policy document */
            group: string;
            /** @description Number of its members who must approve */
            k: number;
            /** @description Number of members whose approvals count for this group */
            have: number;
        };
        ApprovalOutcome: {
            id: string;
            /**
             * @description `open`: further approvals are missing
             * @enum {string}
             */
            state: "open" | "approved" | "rejected";
            needs: components["schemas"]["ApprovalNeed"][];
        };
        ApprovalPage: {
            data: components["schemas"]["Approval"][];
            /**
             * @description Cursor of the next page: pass it as `after`; null on the last page
             * @example 1795600000000.7c9e6679-7425-40de-944b-e07fc1f90ae7
             */
            next: string | null;
            /** @description Whether there are more records */
            has_more: boolean;
        };
        /** @description Who requested it, as the platform states; no approval signs it. Absent for a policy change */
        ApprovalRequester: {
            api_key: string;
            /** @description Name of the person who owns the API key, or the label of the key; absent in events */
            name?: string | null;
        };
        ApprovalStatement: {
            /** @constant */
            v: 1;
            mode: string;
            workspace: string;
            /** @description Hash of the identity keys of the signer nodes */
            nodes: string;
            policy: {
                number: number;
                hash: string;
            };
            /** @description ID of the transfer or the forwarding rule */
            id: string;
            /** @description Hash of the content of the signed request */
            subject: string;
            /** @enum {string} */
            action: "transfer" | "refund" | "stake" | "forward";
            facts: components["schemas"]["ApprovalFacts"];
        };
        Asset: {
            /** @description Asset name that all other operations accept as `asset` */
            asset_name: string;
            name: string;
            ticker: string;
            blockchain: string;
            network: string;
            /** @description Which networks the installation is for: local chains, private chains (a rehearsal), or the real ones */
            mode: ("local" | "mainnet") | string;
            /** @example utxo */
            family: string;
            decimals: number;
            /** @enum {string} */
            type: "native" | "token";
            contract_address: string | null;
            fee_asset: string;
            /** @description Payments of the asset may carry an `address_tag`: a destination tag (XRP) or a memo (XLM) */
            takes_tag: boolean;
            /** @description Many addresses of the asset, in particular those of exchanges, are complete only with their `address_tag`: ask the payee for both, and omit the tag only if the payee has none */
            requires_tag: boolean;
            /**
             * Format: decimal
             * @description Decimal, in the asset’s native unit
             */
            min_withdrawal: Decimal;
            /** @description Issuer of the token on this network, or operator of its bridge; null for native coins */
            issuer: string | null;
            /** @description The token represents one that is locked on another network, so its value also depends on the bridge */
            bridged: boolean;
            /**
             * @description deprecated: new wallets and addresses only if the operator allows them; the balance can be sent. Retired assets are not listed
             * @enum {string}
             */
            status: "active" | "deprecated" | "retired";
            /** @description Date from which `status` applies, YYYY-MM-DD; null while the asset is active */
            status_since: string | null;
            status_reason: string | null;
            /** @description Whether new wallets and addresses can be created */
            is_active: boolean;
            /**
             * @description How an amount is credited that a contract pays: like any deposit; after the balances of the addresses were compared, within `watched_within_s`; or only by the operator
             * @enum {string}
             */
            contract_payments: "credited" | "watched" | "by hand";
            /** @description Time in seconds within which the balance of every address is compared with the books; null if they are not compared */
            watched_within_s: number | null;
            /**
             * Format: decimal
             * @description Smallest amount of contracts that is credited, in the asset’s native unit; smaller amounts at an address are credited when their sum reaches it. Null: there is no minimum
             */
            min_contract_payment: Decimal | null;
        };
        Balance: {
            wallet_id: string;
            asset: string;
            /** @example BTC */
            network: string;
            /** @enum {string} */
            status: "active" | "inactive";
            /**
             * Format: decimal
             * @description Spendable balance: `balance` of GET /dac/v1/wallets
             */
            available: Decimal;
            /**
             * Format: decimal
             * @description `total` minus `available`: reserved for transfers, frozen, staked, in cooldown, not swept yet, or a minimum balance
             */
            pending: Decimal;
            /**
             * Format: decimal
             * @description Total balance on the chain: `omnibus_balance` of GET /dac/v1/wallets
             */
            total: Decimal;
        };
        BalancePage: {
            data: components["schemas"]["Balance"][];
            /**
             * @description Cursor of the next page: pass it as `after`; null on the last page
             * @example BTC
             */
            next: string | null;
            /** @description Whether there are more records */
            has_more: boolean;
        };
        CancelInvoiceRequest: Record<string, never>;
        CancelOrderRequest: Record<string, never>;
        CancelTransactionRequest: Record<string, never>;
        CertifiedKey: {
            workspace: string;
            /** @enum {string} */
            curve: "secp256k1" | "ed25519";
            key_id: string;
            /** @description lower-case hex */
            public_key: string;
            /** @description lower-case hex */
            chain_code: string;
            /** @description Network mode for which the nodes certified the key */
            mode: string;
            epoch: number;
            certificates: {
                node: number;
                /** @description Ed25519, lower-case hex, over custody/key-certificate/v1, a line feed, and the JSON of the fields above */
                signature: string;
            }[];
        };
        ChangeExchangeAccountRequest: {
            label?: string | null;
            api_key?: string | null;
            api_secret?: string | null;
            passphrase?: string | null;
            /** @description A key with withdrawal permission is rejected unless this is true */
            allow_withdrawal?: boolean | null;
            /** @description Books the reported difference: trades, deposits or withdrawals that were made at the exchange by hand */
            accept_difference?: true | null;
        };
        ChangeWebhookRequest: {
            /** @description An https URL at a public address; on the local network also http and loopback */
            url?: string | null;
            /** @description Event types, `group.*` or `*` */
            events?: string[] | null;
            description?: string | null;
            disabled?: boolean | null;
            /** @description classic: transactions in the format of earlier integrations; docs/webhooks.md lists its fields */
            format?: ("standard" | "classic") | null;
        };
        Checkout: {
            inv_id: string;
            /** @enum {string} */
            inv_status: "Pending" | "Processing" | "Paid" | "Expired" | "Invalid";
            exception: ("late" | "partial" | "over") | null;
            merchant: string;
            memo: string | null;
            order_id: string | null;
            fiat: string | null;
            /** @description Exact decimal as a string, because browsers parse numbers as doubles */
            fiat_amount: string | null;
            /** Format: date-time */
            created_at: string;
            expiry: string;
            /** @description The platform’s current time, for a countdown */
            now: string;
            assets: {
                asset: string;
                ticker: string;
                name: string;
                network: string;
                network_name: string;
                takes_tag: boolean;
                requires_tag: boolean;
                /** @description Exact decimal as a string, because browsers parse numbers as doubles */
                crypto_amount: string;
            }[];
            selected: {
                asset: string;
                ticker: string;
                name: string;
                network: string;
                network_name: string;
                address: string;
                address_tag: string | null;
                tag_name: string | null;
                /** @description Exact decimal as a string, because browsers parse numbers as doubles */
                crypto_amount: string;
                /** @description Exact decimal as a string, because browsers parse numbers as doubles */
                paid_amount: string;
                /** @description Exact decimal as a string, because browsers parse numbers as doubles */
                due_amount: string;
                payment_uri: string | null;
                /** @description Exact decimal as a string, because browsers parse numbers as doubles */
                rate: string | null;
                /** Format: date-time */
                rate_at: string | null;
            } | null;
            payments: {
                hash: string | null;
                asset: string;
                ticker: string;
                /** @description Exact decimal as a string, because browsers parse numbers as doubles */
                amount: string;
                /** @enum {string} */
                status: "seen" | "detected" | "confirmed" | "held" | "reverted" | "dropped";
                confirmations: number;
                required: number;
                counts: boolean;
                /** Format: date-time */
                seen_at: string;
                explorer_url: string | null;
            }[];
            success_url: string | null;
            failed_url: string | null;
            cancelled: boolean;
        };
        ChooseCheckoutAssetRequest: {
            /**
             * @description An `asset_name` from `GET /assets`; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
        };
        Coin: {
            /**
             * @description Opaque id of the coin
             * @example BTC-5f1c8a7d0e3b49d2a6c4f7b8e9d0c1a2b3f4e5d6c7a8b9f0e1d2c3b4a5f6e7d8-1
             */
            id: string;
            /** @example BTC */
            asset: string;
            /**
             * Format: decimal
             * @description Amount of the coin
             * @example 0.25
             */
            amount: Decimal;
            /** @description Address of the wallet at which the coin is */
            address: string;
            /**
             * @description Transaction that created the coin
             * @example 5f1c8a7d0e3b49d2a6c4f7b8e9d0c1a2b3f4e5d6c7a8b9f0e1d2c3b4a5f6e7d8
             */
            hash: string;
            /** @description Index of the output in its transaction */
            index: number;
            /**
             * @description Block of the transaction; null: it is in no block
             * @example 912345
             */
            height: number | null;
            /**
             * @description `reserved`: a pending transfer spends it. `frozen`: a request has frozen it. `available`: it can be spent. `held`: screening holds its deposit. `waiting`: its deposit is not credited yet, it is change that is not certain yet, or the coin of a consolidation that is not confirmed
             * @enum {string}
             */
            state: "reserved" | "frozen" | "available" | "held" | "waiting";
            /** @description Whether a request has frozen it, whatever its state */
            frozen: boolean;
            /** @description Why it cannot be spent, as a sentence that may change; null: it can */
            reason: string | null;
            /** @example From the sale of 2025 */
            label: string | null;
        };
        CoinAside: {
            id: string;
            /**
             * @description The asset in which `amount` is denominated
             * @example BCH
             */
            asset: string;
            /** @example BCH */
            network: string;
            /**
             * @description The transaction that created the output or paid the tokens
             * @example 5f1c8a7d0e3b49d2a6c4f7b8e9d0c1a2b3f4e5d6c7a8b9f0e1d2c3b4a5f6e7d8
             */
            txid: string;
            /** @description Index of the output in its transaction; of the token account among its accounts */
            vout: number;
            /**
             * @description Address of the sub-account that received them
             * @example bitcoincash:qpm2qsznhks23z7629mms6s0cwef74vcwvy22gdx6a
             */
            address: string;
            /**
             * Format: decimal
             * @description Amount of `asset`. It is not part of any balance
             */
            amount: Decimal;
            /**
             * @description Why they are not spent. CASH_TOKENS: the output carries CashTokens, which a transfer would burn. TOKEN_ACCOUNT: the tokens are in another token account of the address than its usual one
             * @enum {string}
             */
            reason: "CASH_TOKENS" | "TOKEN_ACCOUNT";
            /** @description Solana: the token account that received the tokens */
            account: string | null;
            /** @description Null if the node did not return the tokens in a valid form */
            token: {
                /**
                 * @description Token category, 64 hexadecimal digits
                 * @example 89cad9e3e34280eb1e8bc420542c00a7fcc01002b663dbf7f38bceddf80e680c
                 */
                category: string;
                /**
                 * @description Fungible tokens in base units, as decimal digits; `0` if there are none
                 * @example 150000000
                 */
                amount: string;
                /** @description The non-fungible token; null: there is none */
                nft: {
                    /** @enum {string} */
                    capability: "none" | "mutable" | "minting";
                    /**
                     * @description In hexadecimal digits; may be empty
                     * @example 0a
                     */
                    commitment: string;
                } | null;
            } | null;
            /** @example 912345 */
            block_height: number;
            /** @example 000000000000000000d1c2b3a4f5e6d7c8b9a0f1e2d3c4b5a6f7e8d9c0b1a2f3 */
            block_hash: string;
            /**
             * Format: date-time
             * @description When the scanner read its block
             */
            found_at: string;
        };
        CoinPage: {
            data: components["schemas"]["Coin"][];
            /**
             * @description Cursor of the next page: pass it as `after`; null on the last page
             * @example 25000000.5f1c8a7d0e3b49d2a6c4f7b8e9d0c1a2b3f4e5d6c7a8b9f0e1d2c3b4a5f6e7d8.1
             */
            next: string | null;
            /** @description Whether there are more records */
            has_more: boolean;
        };
        CoinsAsidePage: {
            data: components["schemas"]["CoinAside"][];
            /**
             * @description Cursor of the next page: pass it as `after`; null on the last page
             * @example 1795600000000.7c9e6679-7425-40de-944b-e07fc1f90ae7
             */
            next: string | null;
            /** @description Whether there are more records */
            has_more: boolean;
        };
        ConsolidateCoinsRequest: {
            /**
             * @description Asset of the wallet. With it, the signer nodes accept the request for no other coin; recommended
             * @example BTC
             * @example USDT_ETH
             */
            asset?: string | null;
            /** @description Maximum network fee rate, in the unit of the chain family; the signer nodes enforce it */
            max_fee_rate: Decimal | string;
            /** @description Number of free coins at which merging ends */
            target_coins: number;
            /** @description Coins below this amount are not merged */
            min_value?: (Decimal | string) | null;
            /** @description Idempotency key, unique within the wallet; shared with transfers */
            sequence_id: string;
        };
        Conversion: {
            id: string;
            /** @enum {string} */
            status: "quoted" | "expired" | "ordered";
            from_asset: string;
            to_asset: string;
            /**
             * Format: decimal
             * @description Amount of from_asset in the request
             */
            amount: Decimal;
            /**
             * Format: decimal
             * @description Amount of to_asset after the exchange’s fee, from the order book at that time
             */
            receive: Decimal;
            /**
             * Format: decimal
             * @description Exact decimal
             */
            price: Decimal | null;
            exchange_account: string;
            exchange: string;
            market: string;
            /** @enum {string} */
            side: "buy" | "sell";
            /**
             * Format: decimal
             * @description Exact decimal
             */
            order_amount: Decimal;
            /**
             * Format: decimal
             * @description No part is executed at a worse price
             */
            limit_price: Decimal;
            /** Format: date-time */
            expires_at: string;
            /** @description What the other accounts would return, or why they cannot convert */
            others: {
                exchange_account: string;
                exchange: string;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                receive: Decimal | null;
                reason: string | null;
            }[];
            order: components["schemas"]["Order"] | null;
            /** Format: date-time */
            created_at: string;
        };
        CreateAddressRequest: {
            /**
             * @description An `asset_name` from `GET /assets`; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
            label?: string | null;
        };
        CreateConversionRequest: {
            /** @description Id of a quote; if absent, the fields of a quote are required */
            quote?: string | null;
            /** @description A coin of the exchange (BTC, USD), or an asset of this platform, which stands for its coin */
            from_asset?: string | null;
            /** @description An `asset_name` from `GET /assets`; case-sensitive */
            to_asset?: string | null;
            /** @description Exact amount of from_asset */
            amount?: (Decimal | string) | null;
            /** @description Ids of exchange accounts; by default all accounts of the sub-account */
            accounts?: string[] | null;
            /** @description Idempotency key, unique within the sub-account’s conversions; a quote already acts as one */
            sequence_id?: string | null;
        };
        CreateExchangeAccountRequest: {
            /**
             * @description Its name in GET /dac/v1/exchanges
             * @example kraken
             */
            exchange: string;
            label: string;
            api_key: string;
            api_secret: string;
            passphrase?: string | null;
            /** @description A key with withdrawal permission is rejected unless this is true */
            allow_withdrawal?: boolean | null;
        };
        CreateExchangeWithdrawalRequest: {
            /** @description Id of an exchange account whose key may withdraw */
            exchange_account: string;
            /**
             * @description An `asset_name` from `GET /assets`; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
            /** @description Exact decimal in the asset’s native unit; a number or a string */
            amount: Decimal | string;
            /** @description One of the wallet’s own addresses; by default its first */
            address?: string | null;
            address_tag?: string | null;
            /** @description Idempotency key, unique within the sub-account’s withdrawals from exchanges */
            sequence_id?: string | null;
        };
        CreateForwardingRuleRequest: {
            /**
             * @description An `asset_name` from `GET /assets`; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
            /** @description Incoming funds are forwarded when their total reaches this amount */
            min_amount: Decimal | string;
            destination_address: string;
            /** @description Destination tag or memo, for networks that have one */
            address_tag?: string | null;
            /** @description Maximum total of all forwards in any 24 hours */
            daily_cap: Decimal | string;
            /**
             * Format: date-time
             * @description Expiry time, ISO 8601 in UTC
             */
            expires_at: string;
        };
        CreateInvoiceRequest: {
            fiat?: "USD" | null;
            /** @description Amount due, in the currency `fiat`; at most six decimals */
            fiat_amount?: (Decimal | string) | null;
            /**
             * @description Asset in which `amount` is denominated, instead of a currency
             * @example BTC
             * @example USDT_ETH
             */
            asset?: string | null;
            amount?: (Decimal | string) | null;
            /** @description Assets that the payer can select; by default every asset with an active wallet in the sub-account, or only `asset` */
            assets?: string[] | null;
            /** @description Displayed to the payer */
            memo?: string | null;
            /** @description Your order number; displayed to the payer */
            order_id?: string | null;
            payer?: {
                email?: string | null;
                name?: string | null;
            } | null;
            /**
             * Format: uri
             * @description URL that receives this invoice’s events, in addition to the webhooks of the sub-account
             */
            webhook_url?: string | null;
            /**
             * Format: uri
             * @description URL to which the checkout redirects a payer who has paid
             */
            success_url?: string | null;
            /**
             * Format: uri
             * @description URL to which the checkout redirects a payer who has not paid
             */
            failed_url?: string | null;
            /** @description Seconds until the invoice expires; at least 60 on real networks */
            expires_in?: number | null;
            tolerance?: (Decimal | string) | null;
            /** @description Idempotency key, unique within the sub-account */
            sequence_id?: string | null;
        };
        CreateOrderRequest: {
            /** @description Id of an exchange account */
            exchange_account: string;
            /**
             * @description Symbol of a market, for example BTC/USD
             * @example BTC/USD
             */
            market: string;
            /** @enum {string} */
            side: "buy" | "sell";
            /** @enum {string} */
            type: "market" | "limit";
            /** @description In the base coin, a multiple of the market’s step size */
            amount?: (Decimal | string) | null;
            /** @description In the quote coin, instead of `amount`: converted to an amount and rounded down to the market’s step size */
            quote_amount?: (Decimal | string) | null;
            /** @description Price of a limit order, a multiple of the market’s step size */
            price?: (Decimal | string) | null;
            /** @description By default GTC for a limit order and IOC for a market order */
            time_in_force?: ("GTC" | "IOC" | "FOK") | null;
            /** @description The exchange rejects the order if it would be filled immediately */
            post_only?: boolean | null;
            /** @description Maximum deviation of a market order from the best price, in basis points (hundredths of a percent); by default 100 */
            max_slippage_bps?: number | null;
            /** @description Idempotency key, unique within the sub-account’s orders */
            sequence_id?: string | null;
        };
        CreatePolicyChangeRequest: {
            document: components["schemas"]["PolicyDocument"];
            /** @description Proofs of possession of new keys, as a policy file contains them */
            possessions?: {
                [key: string]: unknown;
            }[] | null;
            /** @description Why the policy changes */
            comment: string;
        };
        CreateTransactionRequest: {
            /**
             * @description An `asset_name` from `GET /assets`; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
            /** @description Exact decimal in the asset’s native unit; a number or a string */
            amount: Decimal | string;
            destination_address: string;
            /**
             * @description With EXCHANGE, destination_id is the id of an exchange account and destination_address is the exchange’s deposit address for the asset
             * @enum {string}
             */
            destination_type: "EXTERNAL" | "EXCHANGE";
            /** @constant */
            source_type: "INTERNAL";
            /** @description Idempotency key, unique within the wallet */
            sequence_id?: string | null;
            /** @description Your own note; never written to the chain. Rejected if it looks like a tag and the asset’s tag is missing */
            memo?: string | null;
            /** @description Destination tag or memo, for networks that have one */
            address_tag?: string | null;
            /** @description Id of an exchange account; required if destination_type is EXCHANGE */
            destination_id?: string | null;
            /** @description The exchange’s deposit address, repeated; required if it differs from the address of the last transfer */
            confirm_address?: string | null;
            /** @description Maximum network fee rate, in the unit of the chain family; the signer nodes enforce it */
            fee_rate?: (Decimal | string) | null;
            fee_level?: ("low" | "medium" | "high") | null;
            /** @description Accepted from older clients and ignored */
            type?: "Withdraw" | null;
            /** @description Accepted from older clients and ignored */
            ts?: (number | string) | null;
        };
        CreateWalletAliasRequest: {
            /**
             * @description An `asset_name` from `GET /assets`; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
        };
        CreateWalletRequest: {
            /**
             * @description An `asset_name` from `GET /assets`; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
        };
        CreateWebhookRequest: {
            /**
             * Format: uri
             * @description An https URL at a public address; on the local network also http and loopback
             */
            url: string;
            /** @description Event types, `group.*` or `*` */
            events: string[];
            description?: string | null;
            disabled?: boolean | null;
            /** @description classic: transactions in the format of earlier integrations; docs/webhooks.md lists its fields */
            format?: ("standard" | "classic") | null;
        };
        DeleteExchangeAccountRequest: Record<string, never>;
        DeleteForwardingRuleRequest: Record<string, never>;
        DeleteWebhookRequest: Record<string, never>;
        Delivery: {
            id: string;
            webhook_id: string;
            /** @description The same as `webhook-id` */
            event_id: string;
            type: string;
            object: string;
            /** @enum {string} */
            status: "pending" | "delivered" | "failed";
            tries: number;
            tries_left: number;
            /** Format: date-time */
            next_try_at: string | null;
            request: {
                /** @description The exact bytes that are signed and sent */
                body: string;
            };
            /** @description The latest 12, oldest first */
            attempts: {
                at: string;
                url: string;
                duration_ms: number;
                status: number | null;
                error: string | null;
                /** @description The first 1,000 characters */
                answer: string | null;
            }[];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        DeliveryPage: {
            data: components["schemas"]["Delivery"][];
            page: number;
            limit: number;
            total: number;
        };
        EstimateFeeRequest: {
            /**
             * @description An `asset_name` from `GET /assets`; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
            /** @description Exact decimal in the asset’s native unit; a number or a string */
            fee_rate: Decimal | string;
            /** @description Exact decimal in the asset’s native unit; a number or a string */
            amount?: (Decimal | string) | null;
            /** @description If present, rent, activation and the gas of a token’s contract are exact */
            destination_address?: string | null;
        };
        EvaluatePolicyRequest: {
            /**
             * @description Method of the request
             * @enum {string}
             */
            method: "POST";
            /**
             * @description Path of the request: `/dac/v1/transaction`, `/dav/v1/stake`, `/dac/v1/auto-forwarding`, or that of a refund
             * @example /dac/v1/transaction
             */
            uri: string;
            /**
             * @description Body of the request
             * @example {
             *       "asset": "ETH",
             *       "amount": "0.7"
             *     }
             */
            body: {
                [key: string]: unknown;
            };
            /** @description API key of the sub-account that would sign the request; by default the calling key. Required in the control panel and for keys without the role full, which cannot sign such a request */
            api_key?: string | null;
        };
        EventPage: {
            data: {
                /** @enum {string} */
                type: "transaction.created" | "transaction.updated" | "transaction.confirmed" | "transaction.failed" | "transaction.reverted" | "approval.requested" | "approval.updated" | "approval.closed" | "policy.proposed" | "policy.vetoed" | "policy.in_force" | "policy.stopped" | "policy.resumed" | "deposit.detected" | "deposit.confirmed" | "deposit.frozen" | "deposit.released" | "deposit.suspended" | "deposit.reverted" | "address.created" | "address.frozen" | "address.unfrozen" | "wallet.created" | "wallet.updated" | "gas_tank.low" | "gas_tank.empty" | "prepaid_fee.low" | "prepaid_fee.empty" | "prepaid_fee.tier_changed" | "staking.staked" | "staking.unstaked" | "staking.releasable" | "staking.released" | "auto_forwarding.created" | "auto_forwarding.deleted" | "aml.screening_overdue" | "invoice.created" | "invoice.updated" | "invoice.processing" | "invoice.paid" | "invoice.reverted" | "invoice.expired" | "invoice.invalid" | "exchange_account.created" | "exchange_account.updated" | "exchange_account.failing" | "exchange_account.difference" | "exchange_account.deleted" | "order.created" | "order.updated" | "exchange_transfer.created" | "exchange_transfer.updated" | "webhook.test" | "webhook.disabled";
                /** @description Time of the change, ISO 8601 */
                timestamp: string;
                data: {
                    [key: string]: unknown;
                };
                /** @description Equal to `webhook-id` in every delivery attempt, and the cursor of the event log */
                id: string;
                /** @description Id of the object that changed */
                object: string;
                /** @description Number of the event for its object: 1, 2, 3 …, without gaps. A lower number is an older event */
                version: number;
            }[];
            /** @description Cursor for the next request’s `after`; null if there are no events yet */
            next: string | null;
            /** @description Whether more events are available now */
            has_more: boolean;
        };
        ExchangeAccount: {
            id: string;
            exchange: string;
            label: string;
            /**
             * @description failing: the exchange rejected the key at the last request
             * @enum {string}
             */
            status: "active" | "failing";
            reason: string | null;
            /** @description Last characters of the key */
            key_hint: string;
            /**
             * @description Whether this is the only linked account for its account at the exchange. proven: the exchange’s own account id is linked once in the installation. unproven: not proven distinct, because the exchange reports no account id or was not queried yet; its balances are not part of the audit’s sums. duplicate: another linked account is the same one; this one is not counted and cannot be used, so unlink it
             * @enum {string}
             */
            identity: "proven" | "unproven" | "duplicate";
            permissions: {
                /** @description null: the exchange does not report it */
                trade: boolean | null;
                /** @description null: the exchange does not report it */
                withdraw: boolean | null;
                /** @description null: the exchange does not report it */
                ip_restricted: boolean | null;
            };
            allow_withdrawal: boolean;
            warnings: string[];
            /** Format: date-time */
            checked_at: string;
            /** @description Persistent difference between the total at the exchange and the ledger */
            difference: {
                asset: string;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                ledger: Decimal;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                venue: Decimal;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                difference: Decimal;
            }[];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        ExchangeAccountDeletion: {
            id: string;
            /** @constant */
            deleted: true;
        };
        ExchangeAccountPage: {
            data: components["schemas"]["ExchangeAccount"][];
            page: number;
            limit: number;
            total: number;
        };
        ExchangeAccountTest: {
            id: string;
            exchange: string;
            label: string;
            /**
             * @description failing: the exchange rejected the key at the last request
             * @enum {string}
             */
            status: "active" | "failing";
            reason: string | null;
            /** @description Last characters of the key */
            key_hint: string;
            /**
             * @description Whether this is the only linked account for its account at the exchange. proven: the exchange’s own account id is linked once in the installation. unproven: not proven distinct, because the exchange reports no account id or was not queried yet; its balances are not part of the audit’s sums. duplicate: another linked account is the same one; this one is not counted and cannot be used, so unlink it
             * @enum {string}
             */
            identity: "proven" | "unproven" | "duplicate";
            permissions: {
                /** @description null: the exchange does not report it */
                trade: boolean | null;
                /** @description null: the exchange does not report it */
                withdraw: boolean | null;
                /** @description null: the exchange does not report it */
                ip_restricted: boolean | null;
            };
            allow_withdrawal: boolean;
            warnings: string[];
            /** Format: date-time */
            checked_at: string;
            /** @description Persistent difference between the total at the exchange and the ledger */
            difference: {
                asset: string;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                ledger: Decimal;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                venue: Decimal;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                difference: Decimal;
            }[];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            ok: boolean;
            /** @description Why the exchange did not respond, or why it rejected the key */
            error: string | null;
        };
        ExchangeAccountWithBalances: {
            id: string;
            exchange: string;
            label: string;
            /**
             * @description failing: the exchange rejected the key at the last request
             * @enum {string}
             */
            status: "active" | "failing";
            reason: string | null;
            /** @description Last characters of the key */
            key_hint: string;
            /**
             * @description Whether this is the only linked account for its account at the exchange. proven: the exchange’s own account id is linked once in the installation. unproven: not proven distinct, because the exchange reports no account id or was not queried yet; its balances are not part of the audit’s sums. duplicate: another linked account is the same one; this one is not counted and cannot be used, so unlink it
             * @enum {string}
             */
            identity: "proven" | "unproven" | "duplicate";
            permissions: {
                /** @description null: the exchange does not report it */
                trade: boolean | null;
                /** @description null: the exchange does not report it */
                withdraw: boolean | null;
                /** @description null: the exchange does not report it */
                ip_restricted: boolean | null;
            };
            allow_withdrawal: boolean;
            warnings: string[];
            /** Format: date-time */
            checked_at: string;
            /** @description Persistent difference between the total at the exchange and the ledger */
            difference: {
                asset: string;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                ledger: Decimal;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                venue: Decimal;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                difference: Decimal;
            }[];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            balances: components["schemas"]["ExchangeBalance"][];
            /** Format: date-time */
            balances_at: string;
            /** @description Age of the balances, in milliseconds */
            balances_age_ms: number;
        };
        ExchangeBalance: {
            asset: string;
            /**
             * Format: decimal
             * @description Exact decimal
             */
            available: Decimal;
            /**
             * Format: decimal
             * @description Exact decimal
             */
            total: Decimal;
            /**
             * Format: decimal
             * @description Value of `total`; null: no current price is available
             */
            usd: Decimal | null;
            /**
             * Format: decimal
             * @description Price of one unit; null: no current price is available
             */
            price_usd: Decimal | null;
        };
        ExchangeDepositAddress: {
            address: string;
            address_tag: string | null;
            asset: string;
            network: string;
            /** @description Whether the address differs from that of the last transfer; if so, `confirm_address` must repeat it */
            changed: boolean;
            previous: {
                address: string;
                address_tag: string | null;
            } | null;
        };
        ExchangePage: {
            data: {
                exchange: string;
                name: string;
                /**
                 * @description tested: order handling is verified against the exchange’s own error codes; generic: order handling relies on ccxt; read-only: no orders, because the outcome of an order could not be queried
                 * @enum {string}
                 */
                support: "tested" | "generic" | "read-only";
                /** @description Whether a key requires a passphrase */
                passphrase: boolean;
                /** @description Features according to ccxt */
                features: {
                    [key: string]: boolean;
                };
            }[];
        };
        ExchangeTransfer: {
            id: string;
            exchange_account: string;
            exchange: string;
            /** @enum {string} */
            direction: "to_exchange" | "from_exchange";
            asset: string;
            /**
             * Format: decimal
             * @description Exact decimal
             */
            amount: Decimal;
            /**
             * Format: decimal
             * @description Amount that the exchange credited
             */
            credited: Decimal | null;
            /**
             * Format: decimal
             * @description Fee that the exchange charged for a withdrawal, deducted from the amount or in addition to it
             */
            fee: Decimal | null;
            address: string;
            address_tag: string | null;
            /** @enum {string} */
            status: "pending" | "completed" | "failed" | "unknown";
            /**
             * @description NEW: not requested yet; SENDING: the request is being sent; ASKING: the response was lost, and the exchange is queried; WITHDRAWING: the exchange accepted it; MOVING: on the chain; DONE: credited at the destination; FAILED
             * @enum {string}
             */
            sub_status: "NEW" | "SENDING" | "ASKING" | "WITHDRAWING" | "MOVING" | "DONE" | "FAILED";
            /** @description The transfer to the exchange, or the deposit that the withdrawal arrived as */
            transaction_id: string | null;
            /** @description The exchange’s id of the transfer */
            exchange_transfer_id: string | null;
            hash: string | null;
            reason: string | null;
            /** @description Whether the transfer takes longer than expected */
            overdue: boolean;
            sequence_id: string | null;
            version: number;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        ExchangeTransferPage: {
            data: components["schemas"]["ExchangeTransfer"][];
            page: number;
            limit: number;
            total: number;
        };
        FeeEstimate: {
            asset: string;
            /**
             * Format: decimal
             * @description Total network fee of the transfer, in the network’s native coin; includes `rent`, `activation` and `l1_fee`
             */
            fee: Decimal;
            /** Format: decimal */
            fee_rate: Decimal;
            fee_rate_unit: string;
            fee_asset: string;
            /**
             * @description `wallet`: calculated from the caller’s own coins; `typical`: one input and two outputs, or usual gas
             * @enum {string}
             */
            basis: "wallet" | "typical";
            /**
             * Format: decimal
             * @description Part of `fee`: rent deposit for the receiver’s token account (Solana) if it does not exist; assumed missing without a destination_address
             */
            rent?: Decimal;
            /**
             * Format: decimal
             * @description Part of `fee`: cost of creating the receiver’s account (Tron) if it does not exist; replaces the bandwidth cost
             */
            activation?: Decimal;
            /**
             * Format: decimal
             * @description Part of `fee` that an OP Stack roll-up charges in addition to gas: publication on the parent chain and the operator fee
             */
            l1_fee?: Decimal;
        };
        ForwardPage: {
            data: components["schemas"]["TransactionNow"][];
            page: number;
            limit: number;
            total: number;
        };
        ForwardingRule: {
            id: string;
            asset: string;
            /** @enum {string} */
            status: "pending" | "active" | "paused" | "awaiting_approval" | "expired" | "deleting" | "deleted";
            /** Format: decimal */
            min_amount: Decimal;
            /** Format: decimal */
            daily_cap: Decimal;
            destination_address: string;
            address_tag: string | null;
            /** Format: date-time */
            expires_at: string;
            /**
             * Format: decimal
             * @description Amount received since the rule was created that is not forwarded yet
             */
            waiting: Decimal;
            /** @description Why the waiting amount has not been forwarded, or why the platform ended the rule */
            reason: string | null;
            /** @description Approvals of people that the policy requires; present if the status is `awaiting_approval`. `GET /dac/v1/approvals/{id}` with the ID of the rule returns what they sign */
            needs?: components["schemas"]["ApprovalNeed"][];
            /** @description For a deleted rule: hashes of forwards that are signed and not final; they may still be broadcast */
            outstanding: string[];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        ForwardingRulePage: {
            data: components["schemas"]["ForwardingRule"][];
            page: number;
            limit: number;
            total: number;
        };
        FrozenAddress: {
            asset: string;
            network: string;
            address: string;
            address_tag: string | null;
            source: string;
            risk_level: string;
            transaction_id: string;
            /** Format: date-time */
            frozen_at: string;
            /** @description Transactions that are on hold because of this address */
            held: number;
        };
        GasTank: {
            id: string | null;
            network: string;
            asset: string;
            address: string | null;
            /** Format: decimal */
            balance: Decimal;
            /** Format: decimal */
            threshold: Decimal;
            /** @enum {string} */
            status: "ok" | "low" | "empty";
            /**
             * Format: decimal
             * @description Fuel of the tank that transactions left at addresses; it is used first
             */
            float: Decimal;
            /** Format: decimal */
            fee_cap: Decimal | null;
            /** Format: decimal */
            max_gas_price: Decimal | null;
        };
        GasTankEntryPage: {
            data: {
                id: string;
                type: string;
                /**
                 * Format: decimal
                 * @description Change of the amount that the tank can spend
                 */
                balance_change: Decimal;
                /**
                 * Format: decimal
                 * @description Change of the amount reserved for transactions in progress
                 */
                reserved_change: Decimal;
                /**
                 * Format: decimal
                 * @description Change of the tank’s fuel at addresses
                 */
                float_change: Decimal;
                transaction_id: string | null;
                for_transaction_id: string | null;
                /** Format: date-time */
                created_at: string;
            }[];
            page: number;
            limit: number;
            total: number;
        };
        GiveApprovalRequest: {
            /** @enum {string} */
            decision: "approve" | "reject";
            by: string;
            key: string;
            /** @description Time of the signature, in Unix seconds */
            at: number;
            /** @description Time at which the decision stops counting, in Unix seconds: at most 7 days after `at` */
            expires: number;
            signature?: string | null;
            passkey?: components["schemas"]["PasskeyAssertion"] | null;
        };
        Index: {
            name: string;
            description: string;
            links: {
                [key: string]: string;
            };
            authentication: string;
            documentation: string[];
        };
        Invoice: {
            inv_id: string;
            /** @enum {string} */
            inv_status: "Pending" | "Processing" | "Paid" | "Expired" | "Invalid";
            exception: ("late" | "partial" | "over") | null;
            fiat: string | null;
            /** Format: decimal */
            fiat_amount: Decimal | null;
            /** @description The asset that was selected last; null: the payer has not selected one */
            asset: string | null;
            address: string | null;
            address_tag: string | null;
            path: number[] | null;
            /**
             * Format: decimal
             * @description Exact decimal in the asset’s native unit
             */
            crypto_amount: Decimal | null;
            /**
             * Format: decimal
             * @description Exact decimal in the asset’s native unit
             */
            paid_amount: Decimal | null;
            /**
             * Format: decimal
             * @description Exact decimal in the asset’s native unit
             */
            due_amount: Decimal | null;
            payment_uri: string | null;
            /** Format: date-time */
            expiry: string;
            checkout_url: string;
            /** @description Assets in which the invoice can be paid; amounts and rates never change */
            assets: {
                asset: string;
                network: string;
                takes_tag: boolean;
                requires_tag: boolean;
                /**
                 * Format: decimal
                 * @description Exact decimal in the asset’s native unit
                 */
                crypto_amount: Decimal;
                /** Format: decimal */
                rate: Decimal | null;
                /** Format: date-time */
                rate_at: string | null;
                address: string | null;
                address_tag: string | null;
                path: number[] | null;
            }[];
            /** @description The first 10000, oldest first */
            payments: components["schemas"]["InvoicePayment"][];
            /** @description The latest 10000 */
            refunds: {
                transaction_id: string;
                asset: string;
                /**
                 * Format: decimal
                 * @description Exact decimal in the asset’s native unit
                 */
                amount: Decimal;
                /** @enum {string} */
                status: "pending" | "confirmed" | "failed";
                hash: string | null;
            }[];
            /** @description Credited amount that has not been refunded */
            refundable: {
                asset: string;
                /**
                 * Format: decimal
                 * @description Exact decimal in the asset’s native unit
                 */
                amount: Decimal;
            }[];
            /** @description The part of it that exceeds the invoice amount */
            excess: {
                asset: string;
                /**
                 * Format: decimal
                 * @description Exact decimal in the asset’s native unit
                 */
                amount: Decimal;
            }[];
            memo: string | null;
            order_id: string | null;
            payer: {
                email: string | null;
                name: string | null;
            } | null;
            webhook_url: string | null;
            success_url: string | null;
            failed_url: string | null;
            /**
             * Format: decimal
             * @description Permitted underpayment in percent of the amount
             */
            tolerance: Decimal;
            sequence_id: string | null;
            /** @description Increases with every change */
            version: number;
            /** Format: date-time */
            cancelled_at: string | null;
            marked: {
                /** @enum {string} */
                status: "settled" | "invalid";
                reason: string;
                /** Format: date-time */
                at: string;
            } | null;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        InvoicePage: {
            data: components["schemas"]["Invoice"][];
            page: number;
            limit: number;
            total: number;
        };
        InvoicePayment: {
            /** @description Null until the payment is in a block */
            transaction_id: string | null;
            /** @description Null if a contract paid, so that no transaction lists the payment */
            hash: string | null;
            asset: string;
            /**
             * Format: decimal
             * @description Exact decimal in the asset’s native unit
             */
            amount: Decimal;
            /** @enum {string} */
            status: "seen" | "detected" | "confirmed" | "held" | "reverted" | "dropped";
            confirmations: number;
            required: number;
            /** @description False: paid in an asset that was not offered; it does not count towards the invoice */
            counts: boolean;
            note: ("other_asset" | "late") | null;
            /** Format: date-time */
            seen_at: string;
            explorer_url: string | null;
        };
        InvoiceSettings: {
            display_name: string | null;
            allowed_origins: string[];
            confirmations: {
                /** Format: decimal */
                from_usd: Decimal;
                confirmations: number;
            }[];
            /** Format: decimal */
            tolerance: Decimal;
            expires_in: number;
        };
        KeyPage: {
            network: string;
            keys: components["schemas"]["CertifiedKey"][];
        };
        Liveness: {
            /** @constant */
            status: "ok";
        };
        MarkInvoiceRequest: {
            /**
             * @description settled: the invoice becomes Paid; invalid: it becomes Invalid
             * @enum {string}
             */
            status: "settled" | "invalid";
            reason: string;
        };
        MarketPage: {
            /** @description The first 10000 markets; filter with base and quote */
            data: {
                market: string;
                base: string;
                quote: string;
                active: boolean;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                amount_step: Decimal;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                price_step: Decimal;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                min_amount: Decimal | null;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                max_amount: Decimal | null;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                min_cost: Decimal | null;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                maker_fee: Decimal | null;
                /**
                 * Format: decimal
                 * @description Fraction of the cost before any discount, for example 0.0026
                 */
                taker_fee: Decimal | null;
            }[];
        };
        NetworkFeeRates: {
            asset: string;
            fee_rate_unit: string;
            /** Format: decimal */
            low: Decimal;
            /** Format: decimal */
            medium: Decimal;
            /** Format: decimal */
            high: Decimal;
            /**
             * Format: date-time
             * @description When the rates were read from the node; if it has no estimate now, when it last had one
             */
            updated_at: string;
            /** @description Present only if the node has no estimate now: explains which rates are returned instead */
            warning?: string;
        };
        OpenApi: {
            /** @constant */
            openapi: "3.1.0";
        } & {
            [key: string]: unknown;
        };
        Order: {
            id: string;
            exchange_account: string;
            exchange: string;
            market: string;
            /** @enum {string} */
            side: "buy" | "sell";
            /** @enum {string} */
            type: "market" | "limit";
            /** @enum {string} */
            status: "open" | "partially_filled" | "filled" | "cancelled" | "rejected" | "unknown";
            /**
             * @description NEW: not sent yet; SENDING: the order is being sent; ASKING: the response was lost, and the exchange is queried; WORKING: the exchange accepted it; ENDED
             * @enum {string}
             */
            sub_status: "NEW" | "SENDING" | "ASKING" | "WORKING" | "ENDED";
            /**
             * Format: decimal
             * @description Exact decimal
             */
            amount: Decimal;
            /**
             * Format: decimal
             * @description Exact decimal
             */
            quote_amount: Decimal | null;
            /**
             * Format: decimal
             * @description Exact decimal
             */
            price: Decimal | null;
            /**
             * Format: decimal
             * @description For a market order: no part is executed at a worse price
             */
            protection_price: Decimal | null;
            /** @enum {string} */
            time_in_force: "GTC" | "IOC" | "FOK";
            post_only: boolean;
            max_slippage_bps: number | null;
            /**
             * Format: decimal
             * @description Exact decimal
             */
            filled: Decimal;
            /**
             * Format: decimal
             * @description Exact decimal
             */
            remaining: Decimal;
            /**
             * Format: decimal
             * @description Exact decimal
             */
            average_price: Decimal | null;
            /**
             * Format: decimal
             * @description Exact decimal
             */
            cost: Decimal;
            /** @description Fees that the exchange charged */
            fees: {
                asset: string;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                amount: Decimal;
            }[];
            /** @description Why the order was rejected, or ended without being filled */
            reason: string | null;
            client_order_id: string;
            exchange_order_id: string | null;
            /**
             * Format: decimal
             * @description USD: the amount reserved while the order is open, then the fee for the filled amount
             */
            platform_fee: Decimal;
            cancel_requested: boolean;
            sequence_id: string | null;
            version: number;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        OrderBook: {
            market: string;
            bids: {
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                price: Decimal;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                amount: Decimal;
            }[];
            asks: {
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                price: Decimal;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                amount: Decimal;
            }[];
            at: string;
        };
        OrderPage: {
            data: components["schemas"]["Order"][];
            page: number;
            limit: number;
            total: number;
        };
        OrderWithFills: {
            id: string;
            exchange_account: string;
            exchange: string;
            market: string;
            /** @enum {string} */
            side: "buy" | "sell";
            /** @enum {string} */
            type: "market" | "limit";
            /** @enum {string} */
            status: "open" | "partially_filled" | "filled" | "cancelled" | "rejected" | "unknown";
            /**
             * @description NEW: not sent yet; SENDING: the order is being sent; ASKING: the response was lost, and the exchange is queried; WORKING: the exchange accepted it; ENDED
             * @enum {string}
             */
            sub_status: "NEW" | "SENDING" | "ASKING" | "WORKING" | "ENDED";
            /**
             * Format: decimal
             * @description Exact decimal
             */
            amount: Decimal;
            /**
             * Format: decimal
             * @description Exact decimal
             */
            quote_amount: Decimal | null;
            /**
             * Format: decimal
             * @description Exact decimal
             */
            price: Decimal | null;
            /**
             * Format: decimal
             * @description For a market order: no part is executed at a worse price
             */
            protection_price: Decimal | null;
            /** @enum {string} */
            time_in_force: "GTC" | "IOC" | "FOK";
            post_only: boolean;
            max_slippage_bps: number | null;
            /**
             * Format: decimal
             * @description Exact decimal
             */
            filled: Decimal;
            /**
             * Format: decimal
             * @description Exact decimal
             */
            remaining: Decimal;
            /**
             * Format: decimal
             * @description Exact decimal
             */
            average_price: Decimal | null;
            /**
             * Format: decimal
             * @description Exact decimal
             */
            cost: Decimal;
            /** @description Fees that the exchange charged */
            fees: {
                asset: string;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                amount: Decimal;
            }[];
            /** @description Why the order was rejected, or ended without being filled */
            reason: string | null;
            client_order_id: string;
            exchange_order_id: string | null;
            /**
             * Format: decimal
             * @description USD: the amount reserved while the order is open, then the fee for the filled amount
             */
            platform_fee: Decimal;
            cancel_requested: boolean;
            sequence_id: string | null;
            version: number;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            /** @description The first 10000, oldest first */
            fills: {
                id: string;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                price: Decimal;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                amount: Decimal;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                cost: Decimal;
                /**
                 * Format: decimal
                 * @description Exact decimal
                 */
                fee: Decimal;
                fee_asset: string;
                maker: boolean | null;
                at: string;
            }[];
        };
        /** @description Response of a passkey to `navigator.credentials.get`, each field in base64url without padding: `clientDataJSON`, `authenticatorData` and `signature`. Its challenge is the SHA-256 of the bytes that a key would sign. */
        PasskeyAssertion: {
            client_data: string;
            authenticator_data: string;
            signature: string;
        };
        Policy: {
            /** @description Number of the document */
            number: number | null;
            /**
             * @description Hash of the document, which people sign
             * @example c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25
             */
            hash: string | null;
            document: components["schemas"]["PolicyDocument"] | null;
            /** @description The rules of `document`, as sentences */
            rules: components["schemas"]["PolicyRule"][];
            /**
             * @description Signer nodes that have it
             * @example [
             *       1,
             *       2,
             *       3
             *     ]
             */
            held: number[];
            /** @description Statements of the signer nodes that they judge by this document, which a client verifies with its trust file. A node that may have missed a change makes none */
            statements: components["schemas"]["PolicyStatement"][];
            pending: components["schemas"]["PolicyProposal"][];
            stops: components["schemas"]["PolicyStop"][];
            /** @description Documents by which operators of signer nodes want to replace it */
            resets: components["schemas"]["PolicyReset"][];
        };
        PolicyChange: {
            /** @description ID of the change, by which people approve it */
            id: string;
            /**
             * @description `open`: approvals or proofs are missing; `approved`: they are complete, and the nodes do not hold it yet; `held`: two nodes hold it until `acts_at`; `in_force`; `rejected`: a person vetoed it before the nodes held it; `vetoed`: it was vetoed while the nodes held it; `refused`: two nodes refuse it; `expired`; `ended`: another document came into force
             * @enum {string}
             */
            state: "open" | "approved" | "held" | "in_force" | "rejected" | "vetoed" | "refused" | "expired" | "ended";
            /** @description Number of the document */
            number: number;
            /**
             * @description Hash of the document, which people sign
             * @example c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25
             */
            hash: string;
            /**
             * @description Hash of the document that it changes
             * @example c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25
             */
            previous: string;
            /** @example Raise the daily limit */
            comment: string;
            changes: components["schemas"]["PolicyDifference"][];
            needs: components["schemas"]["ApprovalNeed"][];
            /** @description New keys whose holders have not proved that they hold them */
            missing: components["schemas"]["PolicyKey"][];
            /**
             * Format: date-time
             * @description Time from which it is in force. While approvals are missing, it can be later than this
             */
            acts_at: string;
            /**
             * @description Signer nodes that have it
             * @example [
             *       1,
             *       2,
             *       3
             *     ]
             */
            held: number[];
            /**
             * @description Why it ended, or why the nodes do not hold it yet
             * @example signer 2: PENDING: Another change is pending; it can be vetoed
             */
            reason: string | null;
            /** Format: date-time */
            created_at: string;
            /**
             * Format: date-time
             * @description Time at which it expires if its approvals are not complete
             */
            expires_at: string;
        };
        PolicyChangeDetail: {
            /** @description ID of the change, by which people approve it */
            id: string;
            /**
             * @description `open`: approvals or proofs are missing; `approved`: they are complete, and the nodes do not hold it yet; `held`: two nodes hold it until `acts_at`; `in_force`; `rejected`: a person vetoed it before the nodes held it; `vetoed`: it was vetoed while the nodes held it; `refused`: two nodes refuse it; `expired`; `ended`: another document came into force
             * @enum {string}
             */
            state: "open" | "approved" | "held" | "in_force" | "rejected" | "vetoed" | "refused" | "expired" | "ended";
            /** @description Number of the document */
            number: number;
            /**
             * @description Hash of the document, which people sign
             * @example c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25
             */
            hash: string;
            /**
             * @description Hash of the document that it changes
             * @example c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25
             */
            previous: string;
            /** @example Raise the daily limit */
            comment: string;
            changes: components["schemas"]["PolicyDifference"][];
            needs: components["schemas"]["ApprovalNeed"][];
            /** @description New keys whose holders have not proved that they hold them */
            missing: components["schemas"]["PolicyKey"][];
            /**
             * Format: date-time
             * @description Time from which it is in force. While approvals are missing, it can be later than this
             */
            acts_at: string;
            /**
             * @description Signer nodes that have it
             * @example [
             *       1,
             *       2,
             *       3
             *     ]
             */
            held: number[];
            /**
             * @description Why it ended, or why the nodes do not hold it yet
             * @example signer 2: PENDING: Another change is pending; it can be vetoed
             */
            reason: string | null;
            /** Format: date-time */
            created_at: string;
            /**
             * Format: date-time
             * @description Time at which it expires if its approvals are not complete
             */
            expires_at: string;
            document: components["schemas"]["PolicyDocument"];
            /** @description What a reviewer should check; nothing prevents the change */
            warnings: components["schemas"]["PolicyWarning"][];
            statement: components["schemas"]["PolicyChangeStatement"];
            /** @description Approvals and rejections, the latest first */
            have: components["schemas"]["ApprovalDecision"][];
        };
        PolicyChangePage: {
            data: components["schemas"]["PolicyChange"][];
            /**
             * @description Cursor of the next page: pass it as `after`; null on the last page
             * @example 1795600000000.7c9e6679-7425-40de-944b-e07fc1f90ae7
             */
            next: string | null;
            /** @description Whether there are more records */
            has_more: boolean;
        };
        PolicyChangeStatement: {
            /** @constant */
            v: 1;
            mode: string;
            workspace: string;
            /** @description Hash of the identity keys of the signer nodes */
            nodes: string;
            policy: {
                number: number;
                hash: string;
            };
            next: {
                number: number;
                hash: string;
            };
            /** @description Time that all approvals name, in Unix seconds */
            acts_at: number;
        };
        /**
         * @example {
         *       "path": "rules.daily",
         *       "tendency": "narrows",
         *       "sentence": "The rule daily is removed."
         *     }
         */
        PolicyDifference: {
            /** @example rules.daily */
            path: string;
            /**
             * @description Whether more or less passes; `unknown`: this cannot be decided
             * @enum {string}
             */
            tendency: "widens" | "narrows" | "same" | "unknown";
            /** @example The rule daily is removed. */
            sentence: string;
        };
        /**
         * @description A policy document; docs/policy-reference.md explains each field
         * @example {
         *       "kind": "custody-policy",
         *       "v": 1,
         *       "mode": "local",
         *       "workspace": "acme",
         *       "number": 1,
         *       "previous": "0000000000000000000000000000000000000000000000000000000000000000",
         *       "nodes": "c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25",
         *       "people": [
         *         {
         *           "id": "alice",
         *           "name": "alice",
         *           "api_keys": [],
         *           "keys": [
         *             {
         *               "id": "k1",
         *               "kind": "key",
         *               "alg": "Ed25519",
         *               "spki": "MCowBQYDK2VwAyEAA2i5XG9NhbXcPWqNYw4Vgk2o0bS4l0vC4zCqkq1xZ1U="
         *             }
         *           ]
         *         },
         *         {
         *           "id": "bob",
         *           "name": "bob",
         *           "api_keys": [],
         *           "keys": [
         *             {
         *               "id": "k1",
         *               "kind": "key",
         *               "alg": "Ed25519",
         *               "spki": "MCowBQYDK2VwAyEAB2i5XG9NhbXcPWqNYw4Vgk2o0bS4l0vC4zCqkq1xZ1U="
         *             }
         *           ]
         *         },
         *         {
         *           "id": "safe",
         *           "name": "safe",
         *           "api_keys": [],
         *           "keys": [
         *             {
         *               "id": "k1",
         *               "kind": "key",
         *               "alg": "Ed25519",
         *               "spki": "MCowBQYDK2VwAyEAC2i5XG9NhbXcPWqNYw4Vgk2o0bS4l0vC4zCqkq1xZ1U="
         *             }
         *           ]
         *         }
         *       ],
         *       "groups": {
         *         "admins": [
         *           "alice",
         *           "bob",
         *           "safe"
         *         ]
         *       },
         *       "change": {
         *         "approvals": [
         *           {
         *             "group": "admins",
         *             "k": 2
         *           }
         *         ],
         *         "delay_s": 3600,
         *         "veto": "admins"
         *       },
         *       "stop": {
         *         "group": "admins"
         *       },
         *       "resume": {
         *         "approvals": [
         *           {
         *             "group": "admins",
         *             "k": 2
         *           }
         *         ]
         *       },
         *       "rules": [
         *         {
         *           "id": "daily",
         *           "effect": "allow",
         *           "match": {
         *             "action": [
         *               "transfer"
         *             ],
         *             "assets": [
         *               "ETH"
         *             ],
         *             "to": "any"
         *           },
         *           "fee_max": {
         *             "ETH": "0.05"
         *           },
         *           "windows": [
         *             {
         *               "name": "day",
         *               "hours": 24,
         *               "per": "workspace",
         *               "max": {
         *                 "ETH": "5"
         *               },
         *               "share": "1"
         *             }
         *           ]
         *         }
         *       ]
         *     }
         */
        PolicyDocument: {
            /** @constant */
            kind: "custody-policy";
            /** @constant */
            v: 1;
            /** @description Mode of the installation */
            mode: ("local" | "mainnet") | string;
            workspace: string;
            number: number;
            previous: string;
            nodes: string;
            people: {
                id: string;
                name: string;
                /** @constant */
                machine?: true;
                api_keys: string[];
                keys: ({
                    id: string;
                    /** @constant */
                    kind: "key";
                    /** @enum {string} */
                    alg: "Ed25519" | "ES256";
                    spki: string;
                } | {
                    id: string;
                    /** @constant */
                    kind: "passkey";
                    /** @enum {string} */
                    alg: "Ed25519" | "ES256";
                    spki: string;
                    credential: string;
                    rp_id: string;
                    origins: string[];
                    device_bound: boolean;
                })[];
            }[];
            groups: {
                [key: string]: string[];
            };
            change: {
                approvals: {
                    group: string;
                    k: number;
                }[];
                delay_s: number;
                veto: string;
            };
            stop: {
                group: string;
            };
            resume: {
                approvals: {
                    group: string;
                    k: number;
                }[];
            };
            enrolment?: {
                approvals: {
                    group: string;
                    k: number;
                }[];
            };
            orders?: {
                approvals: {
                    group: string;
                    k: number;
                }[];
            };
            /** @constant */
            fees?: "wallet";
            rules: ({
                id: string;
                /** @constant */
                effect: "allow";
                match: {
                    action: ("transfer" | "refund" | "forward" | "stake")[];
                    assets: "any" | string[];
                    networks?: string[];
                    api_keys?: string[];
                    people?: string[];
                    sub_accounts?: string[] | {
                        prefix: string;
                    };
                    sub_accounts_not?: string[] | {
                        prefix: string;
                    };
                    to?: "any" | {
                        addresses?: {
                            network: string;
                            address: string;
                            tag?: string;
                            /** @constant */
                            any_tag?: true;
                        }[];
                        /** @enum {string} */
                        own?: "sub_account" | "workspace";
                    };
                };
                amount?: {
                    min?: {
                        [key: string]: string;
                    };
                    max?: {
                        [key: string]: string;
                    };
                };
                fee_max?: {
                    [key: string]: string;
                };
                windows?: {
                    name: string;
                    hours: number;
                    /** @enum {string} */
                    per: "workspace" | "sub_account" | "api_key" | "destination";
                    max?: {
                        [key: string]: string;
                    };
                    count?: number;
                    share?: string;
                }[];
                approvals?: {
                    group: string;
                    k: number;
                }[];
                approval_s?: number;
                initiator?: boolean;
            } | {
                id: string;
                /** @constant */
                effect: "require";
                match: {
                    action?: ("transfer" | "refund" | "forward" | "stake")[];
                    assets?: "any" | string[];
                    networks?: string[];
                    api_keys?: string[];
                    people?: string[];
                    sub_accounts?: string[] | {
                        prefix: string;
                    };
                    sub_accounts_not?: string[] | {
                        prefix: string;
                    };
                    to?: "any" | {
                        addresses?: {
                            network: string;
                            address: string;
                            tag?: string;
                            /** @constant */
                            any_tag?: true;
                        }[];
                        /** @enum {string} */
                        own?: "sub_account" | "workspace";
                    };
                };
                amount?: {
                    min?: {
                        [key: string]: string;
                    };
                    max?: {
                        [key: string]: string;
                    };
                };
                approvals: {
                    group: string;
                    k: number;
                }[];
                approval_s?: number;
                initiator?: boolean;
            } | {
                id: string;
                /** @constant */
                effect: "deny";
                match: {
                    action?: ("transfer" | "refund" | "forward" | "stake")[];
                    assets?: "any" | string[];
                    networks?: string[];
                    api_keys?: string[];
                    people?: string[];
                    sub_accounts?: string[] | {
                        prefix: string;
                    };
                    sub_accounts_not?: string[] | {
                        prefix: string;
                    };
                    to?: "any" | {
                        addresses?: {
                            network: string;
                            address: string;
                            tag?: string;
                            /** @constant */
                            any_tag?: true;
                        }[];
                        /** @enum {string} */
                        own?: "sub_account" | "workspace";
                    };
                };
                amount?: {
                    min?: {
                        [key: string]: string;
                    };
                    max?: {
                        [key: string]: string;
                    };
                };
            } | {
                id: string;
                /** @constant */
                effect: "limit";
                match: {
                    action?: ("transfer" | "refund" | "forward" | "stake")[];
                    assets?: "any" | string[];
                    networks?: string[];
                    api_keys?: string[];
                    people?: string[];
                    sub_accounts?: string[] | {
                        prefix: string;
                    };
                    sub_accounts_not?: string[] | {
                        prefix: string;
                    };
                    to?: "any" | {
                        addresses?: {
                            network: string;
                            address: string;
                            tag?: string;
                            /** @constant */
                            any_tag?: true;
                        }[];
                        /** @enum {string} */
                        own?: "sub_account" | "workspace";
                    };
                };
                windows: {
                    name: string;
                    hours: number;
                    /** @enum {string} */
                    per: "workspace" | "sub_account" | "api_key" | "destination";
                    max?: {
                        [key: string]: string;
                    };
                    count?: number;
                    share?: string;
                }[];
                above: "deny" | {
                    approvals: {
                        group: string;
                        k: number;
                    }[];
                    approval_s?: number;
                    initiator?: boolean;
                };
            })[];
        };
        PolicyEvaluation: {
            /**
             * @description `approve`: the rule `via` requires the approvals in `needs`. `none`: the workspace has no policy, so nothing limits the request
             * @enum {string}
             */
            effect: "allow" | "approve" | "deny" | "none";
            /**
             * @description Rule by which the request passes
             * @example small
             */
            via: string | null;
            needs: components["schemas"]["ApprovalNeed"][];
            tried: components["schemas"]["PolicyTried"][];
            windows: components["schemas"]["PolicyWindow"][];
            /** @description Why the signer nodes would refuse a signature now; null: they would not */
            refusal: {
                code: string;
                message: string;
                /** Format: date-time */
                frees_at: string | null;
            } | null;
            policy: components["schemas"]["PolicyReference"] | null;
            /**
             * @description Signer nodes that evaluated it
             * @example [
             *       "node 1",
             *       "node 3"
             *     ]
             */
            by: string[];
        };
        /**
         * @example {
         *       "person": "dave",
         *       "key": "k1"
         *     }
         */
        PolicyKey: {
            /** @description ID of the person in the proposed document */
            person: string;
            /** @description ID of a key of that person */
            key: string;
        };
        PolicyKeySuspension: {
            /**
             * @description Hash of the suspension
             * @example c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25
             */
            hash: string;
            /**
             * @description Signer nodes that have recorded it; they inform the others
             * @example [
             *       1,
             *       2,
             *       3
             *     ]
             */
            suspended: number[];
        };
        PolicyProposal: {
            /** @description Number of the document */
            number: number;
            /**
             * @description Hash of the document, which people sign
             * @example c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25
             */
            hash: string;
            document: components["schemas"]["PolicyDocument"];
            /**
             * Format: date-time
             * @description Time from which it is in force, unless it is vetoed
             * @example 2026-11-27T12:00:00.000Z
             */
            acts_at: string;
            /**
             * @description What it changes, as sentences
             * @example [
             *       "The rule daily is removed."
             *     ]
             */
            changes: string[];
            /**
             * @description Person whom the change removes and who has vetoed it: the operators of two nodes must confirm it
             * @example alice
             */
            vetoed_by: string | null;
            /**
             * @description Signer nodes that have it
             * @example [
             *       1,
             *       2,
             *       3
             *     ]
             */
            held: number[];
        };
        /**
         * @example {
         *       "number": 1,
         *       "hash": "c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25"
         *     }
         */
        PolicyReference: {
            /** @description Number of the document */
            number: number;
            /**
             * @description Hash of the document, which people sign
             * @example c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25
             */
            hash: string;
        };
        PolicyReset: {
            /**
             * @description Hash of the document, which people sign
             * @example c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25
             */
            hash: string;
            /**
             * @description Signer nodes whose operators have entered it: all three are required
             * @example [
             *       1,
             *       2
             *     ]
             */
            given_by: number[];
            /**
             * Format: date-time
             * @description Time from which it is in force, unless a change of the policy is approved before; null while an operator is missing
             * @example 2026-12-04T12:00:00.000Z
             */
            acts_at: string | null;
        };
        PolicyResumption: {
            /**
             * @description Hash of the stop
             * @example c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25
             */
            stop: string;
            /** @enum {string} */
            state: "stopped" | "resumed";
            needs: components["schemas"]["ApprovalNeed"][];
            /**
             * @description Signer nodes that have recorded it; they inform the others
             * @example [
             *       1,
             *       2,
             *       3
             *     ]
             */
            resumed: number[];
        };
        PolicyRule: {
            /** @description ID of the rule */
            id: string;
            /**
             * @description The rule in plain English
             * @example daily: Allow transfers of ETH to any address, up to 5 ETH in 24 hours for the workspace.
             */
            sentence: string;
        };
        PolicySimulation: {
            /** @description Number of transfers of the sub-account with the same result */
            same: number;
            /**
             * @description Transfers, with refunds and forwards, that the document would deny
             * @example [
             *       "7c9e6679-7425-40de-944b-e07fc1f90ae7"
             *     ]
             */
            newly_denied: string[];
            /**
             * @description Transfers that would need approvals, and were allowed or denied
             * @example [
             *       "7c9e6679-7425-40de-944b-e07fc1f90ae7"
             *     ]
             */
            newly_approval: string[];
            /**
             * @description Transfers that would need no approvals, and were denied or needed some
             * @example [
             *       "7c9e6679-7425-40de-944b-e07fc1f90ae7"
             *     ]
             */
            newly_allowed: string[];
            /**
             * @description Rules that had no part in any result
             * @example [
             *       "large"
             *     ]
             */
            unused_rules: string[];
            /**
             * @description Forwarding rules of the sub-account whose smallest forward the document would not allow without approvals, with the reason
             * @example [
             *       "The standing rule 7c9e6679-7425-40de-944b-e07fc1f90ae7 would stop: it needs approvals."
             *     ]
             */
            stopped: string[];
        };
        PolicyStatement: {
            /**
             * @description Signer node
             * @example 1
             */
            node: number;
            /** @description Mode of the installation */
            mode: ("local" | "mainnet") | string;
            /**
             * @description Hash of the identity keys of the signer nodes
             * @example c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25
             */
            nodes: string;
            /** @description Workspace */
            workspace: string;
            /** @description Number of the document */
            number: number;
            /**
             * @description Hash of the document, which people sign
             * @example c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25
             */
            hash: string;
            /**
             * @description Unix seconds by the node's clock
             * @example 1795780800
             */
            at: number;
            /**
             * @description Ed25519 signature of the node's identity key, in hex, over `custody/policy-in-force/v1`, a line feed, and the JSON of the other fields in this order
             * @example 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a
             */
            signature: string;
            /** @description Hashes of the stops that apply at the node, in ascending order */
            stops?: string[];
            /** @description Ed25519 signature of the node's identity key, in hex, over `custody/policy-stops/v1`, a line feed, and the JSON of the fields `node` to `at` in this order and `stops` */
            stops_signature?: string;
        };
        PolicyStop: {
            /**
             * @description Hash of the document, which people sign
             * @example c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25
             */
            hash: string;
            /** @description null: the stop is for the whole workspace */
            sub_account: string | null;
            /**
             * @description ID of the person in the policy document
             * @example alice
             */
            by: string;
            at: string;
        };
        PolicyStopOrder: {
            /**
             * @description Hash of the stop, which its end names
             * @example c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25
             */
            hash: string;
            sub_account: string | null;
            /**
             * @description Signer nodes that have recorded it; they inform the others
             * @example [
             *       1,
             *       2,
             *       3
             *     ]
             */
            stopped: number[];
        };
        /**
         * @example {
         *       "rule": "small",
         *       "fits": false,
         *       "why": "amount: 0.7 ETH is above 0.5"
         *     }
         */
        PolicyTried: {
            rule: string;
            /** @description The rule applies: an `allow` allows the request, any other rule restricts it */
            fits: boolean;
            /** @description Why the rule does not fit, or what it adds */
            why: string | null;
        };
        PolicyVersion: {
            /** @description Number of the document */
            number: number;
            /**
             * @description Hash of the document, which people sign
             * @example c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25
             */
            hash: string;
            /**
             * @description `first`: the operators of two signer nodes entered it. `change`: people approved it. `reset`: the operators of all three signer nodes replaced the policy by it
             * @enum {string}
             */
            kind: "first" | "change" | "reset";
            /** @description Time from which it was in force */
            since: string;
            document: components["schemas"]["PolicyDocument"];
            /**
             * @description Who approved the change; for the first document and a reset, who proved that they hold its keys
             * @example [
             *       {
             *         "person": "alice",
             *         "key": "k1",
             *         "at": "2026-11-27T12:00:00.000Z"
             *       }
             *     ]
             */
            signed_by: {
                /**
                 * @description ID of the person in the policy document
                 * @example alice
                 */
                person: string;
                /** @description ID of the key of that person */
                key: string;
                at: string | null;
            }[];
            /**
             * @description Signer nodes that have it
             * @example [
             *       1,
             *       2,
             *       3
             *     ]
             */
            held: number[];
        };
        PolicyVersionPage: {
            data: components["schemas"]["PolicyVersion"][];
            /**
             * @description Cursor of the next page: pass it as `after`; null on the last page
             * @example 3
             */
            next: string | null;
            /** @description Whether there are more records */
            has_more: boolean;
        };
        PolicyVeto: {
            /**
             * @description Hash of the document, which people sign
             * @example c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25
             */
            hash: string;
            /**
             * @description Signer nodes that have recorded it; they inform the others
             * @example [
             *       1,
             *       2,
             *       3
             *     ]
             */
            vetoed: number[];
        };
        PolicyWarning: {
            /** @example groups.admins */
            path: string;
            message: string;
        };
        PolicyWindow: {
            rule: string;
            name: string;
            /** @description null: the window counts requests, not amounts */
            asset: string | null;
            /** @description true: the part of one sub-account in a window of the whole workspace */
            share: boolean;
            /**
             * @description Without this request, in the unit of the asset
             * @example 1.5
             */
            used: string;
            /**
             * @description null: the window does not name the asset, so the request does not fit
             * @example 1.5
             */
            max: string | null;
            fits: boolean;
            /**
             * Format: date-time
             * @description Time from which the request would fit; null: now, or never
             */
            frees_at: string | null;
        };
        /**
         * @example {
         *       "asset": "ETH",
         *       "used": "1.5",
         *       "max": "5"
         *     }
         */
        PolicyWindowLimit: {
            /** @description null: the number of payments, not an amount */
            asset: string | null;
            /** @description In the unit of the asset */
            used: string;
            max: string;
        };
        PolicyWindowPage: {
            /** @description null: the workspace has no policy */
            policy: components["schemas"]["PolicyReference"] | null;
            data: components["schemas"]["PolicyWindowUse"][];
            /** @description Whether less used windows were left off */
            left_off: boolean;
            /**
             * @description Signer nodes that reported it
             * @example [
             *       "node 1",
             *       "node 3"
             *     ]
             */
            by: string[];
        };
        PolicyWindowUse: {
            rule: string;
            window: string;
            /** @enum {string} */
            per: "workspace" | "sub_account" | "api_key" | "destination";
            /** @description true: the part of one sub-account in a window of the whole workspace */
            share: boolean;
            /** @description What is counted: a sub-account, an API key, or the network and address of a destination; null: the whole workspace */
            of: string | null;
            hours: number;
            limits: components["schemas"]["PolicyWindowLimit"][];
        };
        PrepaidFee: {
            /** Format: decimal */
            balance: Decimal;
            /** Format: decimal */
            reserved: Decimal;
            /** @constant */
            currency: "USD";
            /** @enum {string} */
            status: "ok" | "low" | "empty";
            tier: string;
            fees: {
                basis_points: number;
                /** Format: double */
                percent: number;
                /** Format: decimal */
                minimum: Decimal;
                /** Format: decimal */
                monthly: Decimal;
            };
            /** Format: decimal */
            volume_30d: Decimal;
        };
        PrepaidFeeEntryPage: {
            data: {
                id: string;
                /** @enum {string} */
                type: "reservation" | "charge" | "refund" | "adjustment" | "subscription";
                /** Format: decimal */
                amount: Decimal;
                /** Format: decimal */
                balance_change: Decimal;
                /**
                 * Format: decimal
                 * @description Balance of the account after the movement
                 */
                balance_after: Decimal;
                transaction_id: string | null;
                order_id: string | null;
                /** Format: date-time */
                created_at: string;
            }[];
            page: number;
            limit: number;
            total: number;
        };
        Price: {
            asset: string;
            /** Format: decimal */
            price_usd: Decimal;
            sources: string[];
            /** Format: date-time */
            updated_at: string;
            stale: boolean;
        };
        /** @description An error (RFC 9457). `code` is for programs, `message` for people. */
        Problem: {
            /**
             * Format: uri
             * @description URL of this code’s page on this server
             */
            type: string;
            /** @description Meaning of the code; always the same */
            title: string;
            /** @description The HTTP status */
            status: number;
            /** @description The same as `message` */
            detail: string;
            /** @description The reason phrase of the HTTP status */
            error: string;
            /** @description What is wrong in this request, with the field and the limit */
            message: string;
            /**
             * @description Error code; stable, never renamed or reused
             * @enum {string}
             */
            code: "INVALID_REQUEST" | "UNKNOWN_FIELD" | "INVALID_JSON" | "UNSUPPORTED_ASSET" | "ASSET_CLOSED" | "INVALID_ADDRESS" | "INVALID_AMOUNT" | "INSUFFICIENT_BALANCE" | "CONSOLIDATE_FIRST" | "NOTHING_TO_CONSOLIDATE" | "WALLET_EXISTS" | "WALLET_MISSING" | "WALLET_INACTIVE" | "TRANSACTION_FINAL" | "NOT_REPLACEABLE" | "REPLACEMENT_PENDING" | "RULE_EXISTS" | "RULE_FINAL" | "INVOICE_FINAL" | "INVOICE_CLOSED" | "RESOURCE_MISMATCH" | "INSUFFICIENT_STAKE" | "RELEASE_FIRST" | "UNSTAKE_LIMIT" | "NOTHING_TO_RELEASE" | "APPROVAL_REFUSED" | "NOT_FROZEN" | "WEBHOOK_LIMIT" | "WEBHOOK_DISABLED" | "EXCHANGE_KEY_REFUSED" | "EXCHANGE_ACCOUNT_EXISTS" | "EXCHANGE_UNSUPPORTED" | "ORDER_FINAL" | "UNAUTHORIZED" | "SIGN_IN_REQUIRED" | "SIGN_IN_FAILED" | "FORBIDDEN" | "READ_ONLY" | "IP_NOT_ALLOWED" | "ROLE_REQUIRED" | "RECENT_SIGN_IN_REQUIRED" | "FOREIGN_ORIGIN" | "HTTPS_REQUIRED" | "PREPAID_FEE_EXHAUSTED" | "ADDRESS_FROZEN" | "POLICY_DENIED" | "SANCTIONED" | "NOT_FOUND" | "METHOD_NOT_ALLOWED" | "REQUEST_TIMEOUT" | "PASSKEY_UNAVAILABLE" | "LAST_OWNER" | "LAST_FACTOR" | "COIN_RESERVED" | "CONSOLIDATION_PENDING" | "FEE_RATE_ABOVE_MAXIMUM" | "APPROVAL_CLOSED" | "POLICY_CHANGE_LIMIT" | "QUOTE_EXPIRED" | "CONVERSION_UNAVAILABLE" | "EXCHANGE_ADDRESS_CHANGED" | "EXCHANGE_ACCOUNT_LINKED" | "EXCHANGE_ACCOUNT_BUSY" | "INVITATION_CLOSED" | "CURSOR_EXPIRED" | "PAYLOAD_TOO_LARGE" | "URI_TOO_LONG" | "UNSUPPORTED_MEDIA_TYPE" | "HEADERS_TOO_LARGE" | "RATE_LIMITED" | "CONCURRENT_REQUEST" | "INTERNAL" | "NETWORK_UNAVAILABLE" | "PROVIDER_UNAVAILABLE" | "PRICE_UNAVAILABLE" | "EXCHANGE_UNAVAILABLE" | "SIGNERS_UNAVAILABLE" | "KEY_PENDING" | "UNAVAILABLE";
            /** @description Field, parameter, header or JWT claim that failed */
            field?: string;
            /** @description The same as x-request-id; include it when you contact the operator */
            request_id: string;
            /** @description Id of the existing object */
            id?: string;
            /** @description Id of the existing wallet */
            wallet_id?: string;
            /** @description The largest amount that one transfer can pay from the wallet’s coins now */
            max_spendable?: number;
            /** @description The asset that failed, if the request contains several */
            asset?: string;
            /** @description Status of the invoice */
            inv_status?: string;
            /** @description The exchange’s current deposit address for the asset */
            address?: string;
            /** @description Tag of the address */
            address_tag?: string | null;
            /**
             * Format: date-time
             * @description When the lock of a control-panel sign-in ends
             */
            locked_until?: string;
            /** @description The policy document that denies the transfer */
            policy?: {
                number: number;
                /** @description SHA-256 of the document, in hex */
                hash: string;
            };
            /** @description Rules of the policy, with the reason why each does not fit or restricts it */
            tried?: {
                /** @description ID of the rule */
                rule: string;
                /** @enum {string} */
                effect: "allow" | "deny" | "require" | "limit";
                fits: boolean;
                why: string | null;
            }[];
            /** @description The exchange’s deposit address at the last transfer */
            previous?: {
                /** @description The address */
                address: string;
                /** @description Tag of the address */
                tag: string | null;
            } | null;
        };
        ProvePolicyKeyRequest: {
            by: string;
            key: string;
            signature?: string | null;
            passkey?: components["schemas"]["PasskeyAssertion"] | null;
        };
        QuoteConversionRequest: {
            /**
             * @description A coin of the exchange (BTC, USD), or an asset of this platform, which stands for its coin
             * @example BTC
             */
            from_asset: string;
            /**
             * @description An `asset_name` from `GET /assets`; case-sensitive
             * @example USDT
             */
            to_asset: string;
            /** @description Exact amount of from_asset */
            amount: Decimal | string;
            /** @description Ids of exchange accounts; by default all accounts of the sub-account */
            accounts?: string[] | null;
        };
        ReadPrepaidFeeRequest: Record<string, never>;
        Readiness: {
            /** @enum {string} */
            status: "ok" | "unavailable";
            checks: {
                [key: string]: string;
            };
        };
        RefundInvoiceRequest: {
            /**
             * @description An `asset_name` from `GET /assets`; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
            /** @description Exact decimal in the asset’s native unit; a number or a string */
            amount: Decimal | string;
            destination_address: string;
            /**
             * @description With EXCHANGE, destination_id is the id of an exchange account and destination_address is the exchange’s deposit address for the asset
             * @enum {string}
             */
            destination_type: "EXTERNAL" | "EXCHANGE";
            /** @constant */
            source_type: "INTERNAL";
            /** @description Idempotency key, unique within the wallet */
            sequence_id?: string | null;
            /** @description Your own note; never written to the chain. Rejected if it looks like a tag and the asset’s tag is missing */
            memo?: string | null;
            /** @description Destination tag or memo, for networks that have one */
            address_tag?: string | null;
            /** @description Id of an exchange account; required if destination_type is EXCHANGE */
            destination_id?: string | null;
            /** @description The exchange’s deposit address, repeated; required if it differs from the address of the last transfer */
            confirm_address?: string | null;
            /** @description Maximum network fee rate, in the unit of the chain family; the signer nodes enforce it */
            fee_rate?: (Decimal | string) | null;
            fee_level?: ("low" | "medium" | "high") | null;
            /** @description Accepted from older clients and ignored */
            type?: "Withdraw" | null;
            /** @description Accepted from older clients and ignored */
            ts?: (number | string) | null;
        };
        ReleaseUnstakedRequest: {
            /** @constant */
            asset: "TRX";
            address: string;
            /** @description Idempotency key, unique within the TRX wallet; shared with transfers */
            sequence_id?: string | null;
        };
        Replacement: {
            /** @enum {string} */
            kind: "speed-up" | "cancel" | "automatic";
            /** @enum {string} */
            state: "pending" | "done" | "refused";
            /** Format: decimal */
            fee_rate: Decimal | null;
            fee_level: string | null;
            reason: string | null;
            /** Format: date-time */
            created_at: string;
        };
        ReservePage: {
            data: components["schemas"]["ReservesStatement"][];
            page: number;
            limit: number;
            total: number;
        };
        ReservesProof: {
            snapshot: string;
            workspace: string;
            sub_account: string;
            /** @description 32 bytes, lower-case hex; known only to you */
            secret: string;
            /** @description One leaf for each wallet that existed */
            leaves: {
                asset: string;
                /** @description Integer in the smallest unit, as decimal digits */
                balance: string;
                /** @description 32 bytes, lower-case hex */
                nonce: string;
                /** @description Sibling sums from the leaf to the root */
                siblings: {
                    /** @enum {string} */
                    side: "left" | "right";
                    /** @description 32 bytes, lower-case hex */
                    hash: string;
                    /** @description Integer in the smallest unit, as decimal digits */
                    sum: string;
                }[];
            }[];
        };
        ReservesStatement: {
            id: string;
            /** Format: date-time */
            created_at: string;
            /** @description SHA-256 of `statement`, lower-case hex */
            hash: string;
            /** @description Canonical JSON (RFC 8785), the exact bytes that were signed: assets and liabilities of each asset, and its root */
            statement: string;
            signatures: {
                node: number;
                /** @description Ed25519, lower-case hex, over custody/reserves/v1, a line feed, and {"statement":"HASH"} */
                signature: string;
            }[];
        };
        ResumePolicyRequest: {
            by: string;
            key: string;
            /** @description Time of the signature, in Unix seconds */
            at: number;
            /** @description Time at which the statement stops counting, in Unix seconds: at most 7 days after `at` */
            expires: number;
            signature?: string | null;
            passkey?: components["schemas"]["PasskeyAssertion"] | null;
            /**
             * @description Hash of the stop
             * @example abababababababababababababababababababababababababababababababab
             */
            stop: string;
        };
        RotateWebhookSecretRequest: {
            /** @description Seconds during which the previous secret signs as well; by default 86400; 0: it is invalid immediately */
            overlap_s?: number | null;
        };
        SaveAmlSettingsRequest: {
            /**
             * @description Name of the provider, in any letter case
             * @enum {string}
             */
            provider: "CHAINALYSIS" | "ELLIPTIC" | "TRM";
            /** @description API key of the provider; for Elliptic: key:secret */
            aml_token: string;
            /**
             * @description The risk levels to hold, comma-separated: SEVERE, HIGH, MEDIUM, LOW
             * @example SEVERE, HIGH
             */
            aml_risk_levels: string;
            aml_deposit: boolean;
            aml_withdrawal: boolean;
            /** @description Deposits worth less than so many USD are credited although not all of their senders are known; known senders are screened. Without it, or 0: all are held */
            aml_unknown_sender_usd?: (Decimal | string) | null;
        };
        SaveInvoiceSettingsRequest: {
            /** @description Name displayed to payers; by default the workspace’s name */
            display_name?: string | null;
            /** @description Origins of pages that may embed the checkout in a frame */
            allowed_origins?: string[] | null;
            /** @description Confirmations by the value of an invoice, with ascending from_usd; never fewer than the network’s depth */
            confirmations?: {
                /** @description USD, at most six decimals */
                from_usd: Decimal | string;
                /** @description Confirmations that a payment requires in addition to being credited */
                confirmations: number;
            }[] | null;
            tolerance?: (Decimal | string) | null;
            /** @description Seconds until the invoice expires; at least 60 on real networks */
            expires_in?: number | null;
        };
        SignedPolicyStop: {
            /**
             * @description Hash of the signed stop
             * @example c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25
             */
            hash: string;
            is_in_force: boolean;
            /** @description null: the stop is for the whole workspace */
            sub_account: string | null;
            /**
             * @description ID of the person in the policy document
             * @example alice
             */
            by: string;
            at: string;
            reason: string;
            needs: components["schemas"]["ApprovalNeed"][];
            /** @description The signed statement as JSON text */
            signed: string;
        };
        SimulatePolicyRequest: {
            document: components["schemas"]["PolicyDocument"];
            /** @description Number of transfers, refunds and forwards of the workspace that are replayed; by default 1000, or fewer if the two documents have more than 200 rules together */
            last?: number | null;
        };
        SpeedUpTransactionRequest: {
            /** @description New maximum network fee rate, in the unit of the chain family */
            fee_rate?: (Decimal | string) | null;
            /** @description Fee level; high if neither `fee_rate` nor `fee_level` is present */
            fee_level?: ("low" | "medium" | "high") | null;
        };
        StakeRequest: {
            /** @constant */
            asset: "TRX";
            /** @description Tron address that receives the resource: the wallet’s own address or another one */
            address: string;
            /** @enum {string} */
            resource: "ENERGY" | "BANDWIDTH";
            /** @description Exact decimal in the asset’s native unit; a number or a string */
            amount: Decimal | string;
            /** @description Idempotency key, unique within the TRX wallet; shared with transfers */
            sequence_id?: string | null;
        };
        Staking: {
            staked: {
                /** Format: decimal */
                ENERGY: Decimal;
                /** Format: decimal */
                BANDWIDTH: Decimal;
            };
            cooling: {
                /** Format: decimal */
                amount: Decimal;
                /**
                 * Format: date-time
                 * @description In chain time; an estimate until the unstake is confirmed
                 */
                release_at: string;
                confirmed: boolean;
            }[];
            /** Format: decimal */
            releasable: Decimal;
        };
        StakingAnswer: {
            id: string;
            /** @enum {string} */
            status: "pending" | "confirmed" | "failed";
            hash: string | null;
        };
        Statement: {
            asset: string;
            /** @enum {string} */
            account: "wallet" | "gas_tank";
            /** @description null: the statement of a gas tank */
            wallet_id: string | null;
            /** @description Balance at the beginning of the period */
            opening: components["schemas"]["StatementBalance"];
            /** @description Balance at the end of the period */
            closing: components["schemas"]["StatementBalance"];
            data: components["schemas"]["StatementMovement"][];
            /**
             * @description Cursor of the next page: pass it as `after`; null on the last page
             * @example 1795600000000000.81245
             */
            next: string | null;
            /** @description Whether there are more records */
            has_more: boolean;
        };
        StatementBalance: {
            /**
             * Format: decimal
             * @description Sum of the parts
             */
            total: Decimal;
            /**
             * Format: decimal
             * @description At the account of the wallet or tank, including amounts that are reserved for transfers
             */
            liquid: Decimal;
            /**
             * Format: decimal
             * @description At deposit addresses
             */
            unswept: Decimal;
            /**
             * Format: decimal
             * @description In deposits that screening holds
             */
            frozen: Decimal;
            /**
             * Format: decimal
             * @description Staked
             */
            staked: Decimal;
            /**
             * Format: decimal
             * @description Unstaked and not released yet
             */
            cooling: Decimal;
            /**
             * Format: decimal
             * @description Fuel of a gas tank at addresses; 0 for a wallet
             */
            at_addresses: Decimal;
        };
        StatementMovement: {
            /** @description Number of the ledger entry */
            id: string;
            /** @description When it was booked */
            at: string;
            /** @enum {string} */
            type: "deposit" | "deposit_frozen" | "deposit_released" | "deposit_assigned" | "deposit_reverted" | "withdrawal" | "forward" | "refund" | "exchange_deposit" | "network_fee" | "sweep" | "stake" | "unstake" | "stake_release" | "fuel" | "fee_correction" | "drain" | "energy_loan" | "reverted" | "written_off" | "other";
            /**
             * Format: decimal
             * @description Change of the balance without the network fee; negative: outgoing
             */
            amount: Decimal;
            /**
             * Format: decimal
             * @description Network fee that was paid from this balance
             */
            network_fee: Decimal;
            /**
             * Format: decimal
             * @description Balance after the movement: the balance before + `amount` − `network_fee`
             */
            balance: Decimal;
            /** @description Change of each part of the balance */
            changes: {
                /**
                 * Format: decimal
                 * @description At the account of the wallet or tank, including amounts that are reserved for transfers
                 */
                liquid: Decimal;
                /**
                 * Format: decimal
                 * @description At deposit addresses
                 */
                unswept: Decimal;
                /**
                 * Format: decimal
                 * @description In deposits that screening holds
                 */
                frozen: Decimal;
                /**
                 * Format: decimal
                 * @description Staked
                 */
                staked: Decimal;
                /**
                 * Format: decimal
                 * @description Unstaked and not released yet
                 */
                cooling: Decimal;
                /**
                 * Format: decimal
                 * @description Fuel of a gas tank at addresses; 0 for a wallet
                 */
                at_addresses: Decimal;
            };
            /**
             * Format: decimal
             * @description Network fee that the gas tank paid for the movement of a wallet. It is not part of this balance. null: the gas tank paid nothing
             */
            tank_fee: Decimal | null;
            tank_fee_asset: string | null;
            transaction_id: string | null;
            /** @description Asset of the transaction; it differs if this balance only pays the network fee */
            transaction_asset: string | null;
            hash: string | null;
            /** @description Sender of a deposit, otherwise the destination */
            counterparty: string | null;
            sequence_id: string | null;
        };
        StopPolicyRequest: {
            by: string;
            key: string;
            /** @description Time of the signature, in Unix seconds */
            at: number;
            /** @description Time at which the statement stops counting, in Unix seconds: at most 7 days after `at` */
            expires: number;
            signature?: string | null;
            passkey?: components["schemas"]["PasskeyAssertion"] | null;
            /** @description Name of the sub-account; absent or null: the whole workspace */
            sub_account?: string | null;
            /** @description Reason, which is signed */
            reason: string;
        };
        SuspendPolicyKeyRequest: {
            by: string;
            key: string;
            /** @description Time of the signature, in Unix seconds */
            at: number;
            /** @description Time at which the statement stops counting, in Unix seconds: at most 7 days after `at` */
            expires: number;
            signature?: string | null;
            passkey?: components["schemas"]["PasskeyAssertion"] | null;
            /**
             * @description The person and their key
             * @example {
             *       "person": "alice",
             *       "key": "k1"
             *     }
             */
            target: {
                person: string;
                key: string;
            };
            /** @description Reason, which is signed */
            reason: string;
        };
        TestExchangeAccountRequest: Record<string, never>;
        Ticker: {
            market: string;
            /**
             * Format: decimal
             * @description Exact decimal
             */
            bid: Decimal | null;
            /**
             * Format: decimal
             * @description Exact decimal
             */
            ask: Decimal | null;
            /**
             * Format: decimal
             * @description Exact decimal
             */
            last: Decimal | null;
            at: string;
        };
        Transaction: {
            id: string;
            type: string;
            hash: string | null;
            asset: string;
            /** Format: decimal */
            amount: Decimal;
            /**
             * Format: decimal
             * @description Network fee: an estimate until confirmation, then the fee paid; 0 if the transaction failed before it reached a chain
             */
            fee: Decimal;
            fee_asset: string;
            source_type: string;
            source_id: string | null;
            destination_type: string;
            destination_id: string | null;
            address_tag: string | null;
            /** @enum {string} */
            status: "pending" | "confirmed" | "failed";
            sub_status: string;
            confirmations: number;
            /** @description How often a reorganisation of the chain has removed the block that confirmed or failed it; 0 for almost all transactions. A later event of the same transaction with a higher generation replaces earlier ones. Absent in responses and events that an earlier version has stored */
            generation?: number;
            /** @description The memo in the request; empty if there was none, and for deposits */
            memo: string;
            sequence_id: string | null;
            failure_reason: string | null;
            /**
             * Format: decimal
             * @description Value at the price when the transaction was created, or when the deposit was first seen in a block; it never changes. null if there was no current price
             */
            amount_in_usd: Decimal | null;
            /**
             * Format: decimal
             * @description Platform fee in USD; for a failed transaction, the part that was charged. null: no platform fee applies
             */
            platform_fee: Decimal | null;
            /** @description For a transfer that failed before payment: proof that the signer nodes will sign nothing for it */
            voids: components["schemas"]["Void"][];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            /** Format: date-time */
            confirmed_at: string | null;
        };
        TransactionNow: {
            id: string;
            type: string;
            hash: string | null;
            asset: string;
            /** Format: decimal */
            amount: Decimal;
            /**
             * Format: decimal
             * @description Network fee: an estimate until confirmation, then the fee paid; 0 if the transaction failed before it reached a chain
             */
            fee: Decimal;
            fee_asset: string;
            source_type: string;
            source_id: string | null;
            destination_type: string;
            destination_id: string | null;
            address_tag: string | null;
            /** @enum {string} */
            status: "pending" | "confirmed" | "failed";
            sub_status: string;
            confirmations: number;
            /** @description How often a reorganisation of the chain has removed the block that confirmed or failed it; 0 for almost all transactions. A later event of the same transaction with a higher generation replaces earlier ones. Absent in responses and events that an earlier version has stored */
            generation?: number;
            /** @description The memo in the request; empty if there was none, and for deposits */
            memo: string;
            sequence_id: string | null;
            failure_reason: string | null;
            /**
             * Format: decimal
             * @description Value at the price when the transaction was created, or when the deposit was first seen in a block; it never changes. null if there was no current price
             */
            amount_in_usd: Decimal | null;
            /**
             * Format: decimal
             * @description Platform fee in USD; for a failed transaction, the part that was charged. null: no platform fee applies
             */
            platform_fee: Decimal | null;
            /** @description For a transfer that failed before payment: proof that the signer nodes will sign nothing for it */
            voids: components["schemas"]["Void"][];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            /** Format: date-time */
            confirmed_at: string | null;
            /** @description What a pending transfer is waiting for; null while it is being processed */
            waiting: components["schemas"]["Waiting"] | null;
        };
        TransactionPage: {
            data: components["schemas"]["TransactionNow"][];
            page: number;
            limit: number;
            total: number;
        };
        TransactionWithReplacements: {
            id: string;
            type: string;
            hash: string | null;
            asset: string;
            /** Format: decimal */
            amount: Decimal;
            /**
             * Format: decimal
             * @description Network fee: an estimate until confirmation, then the fee paid; 0 if the transaction failed before it reached a chain
             */
            fee: Decimal;
            fee_asset: string;
            source_type: string;
            source_id: string | null;
            destination_type: string;
            destination_id: string | null;
            address_tag: string | null;
            /** @enum {string} */
            status: "pending" | "confirmed" | "failed";
            sub_status: string;
            confirmations: number;
            /** @description How often a reorganisation of the chain has removed the block that confirmed or failed it; 0 for almost all transactions. A later event of the same transaction with a higher generation replaces earlier ones. Absent in responses and events that an earlier version has stored */
            generation?: number;
            /** @description The memo in the request; empty if there was none, and for deposits */
            memo: string;
            sequence_id: string | null;
            failure_reason: string | null;
            /**
             * Format: decimal
             * @description Value at the price when the transaction was created, or when the deposit was first seen in a block; it never changes. null if there was no current price
             */
            amount_in_usd: Decimal | null;
            /**
             * Format: decimal
             * @description Platform fee in USD; for a failed transaction, the part that was charged. null: no platform fee applies
             */
            platform_fee: Decimal | null;
            /** @description For a transfer that failed before payment: proof that the signer nodes will sign nothing for it */
            voids: components["schemas"]["Void"][];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            /** Format: date-time */
            confirmed_at: string | null;
            /** @description What a pending transfer is waiting for; null while it is being processed */
            waiting: components["schemas"]["Waiting"] | null;
            replacements?: components["schemas"]["Replacement"][];
        };
        UnfreezeAddressRequest: {
            /**
             * @description An `asset_name` from `GET /assets`; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
            address: string;
            address_tag?: string | null;
        };
        UnstakeRequest: {
            /** @constant */
            asset: "TRX";
            /** @description Tron address that receives the resource: the wallet’s own address or another one */
            address: string;
            /** @enum {string} */
            resource: "ENERGY" | "BANDWIDTH";
            /** @description Exact decimal in the asset’s native unit; a number or a string */
            amount: Decimal | string;
            /** @description Idempotency key, unique within the TRX wallet; shared with transfers */
            sequence_id?: string | null;
        };
        UpdateCoinRequest: {
            /** @description A text of your own; null removes it */
            label?: string | null;
            /** @description Whether transfers must not spend the coin */
            frozen?: boolean | null;
        };
        ValidateAddressRequest: {
            /**
             * @description An `asset_name` from `GET /assets`; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
            address: string;
            address_tag?: string | null;
        };
        VetoPolicyRequest: {
            by: string;
            key: string;
            /** @description Time of the signature, in Unix seconds */
            at: number;
            /** @description Time at which the statement stops counting, in Unix seconds: at most 7 days after `at` */
            expires: number;
            signature?: string | null;
            passkey?: components["schemas"]["PasskeyAssertion"] | null;
            /**
             * @description Hash of the document that would come into force
             * @example abababababababababababababababababababababababababababababababab
             */
            hash: string;
        };
        Void: {
            record: components["schemas"]["VoidRecord"];
            /** @description Ed25519, lower-case hex, over custody/void/v2, a line feed, and the JSON of the record */
            signature: string;
        };
        VoidRecord: {
            node: number;
            intent: string;
            transaction_id: string;
            /** @description The standing rule whose forward was voided; null: a request of the caller */
            rule: string | null;
            height: number;
            voided_at: number;
            /** @description Hashes of the transactions that the node signed for it, without fuel and loans */
            signed: string[];
            /** @description Transactions that entered signing and whose outcome the node does not know */
            unfinished: number;
        };
        Waiting: {
            /** @description Reason code. Currently NETWORK_FEES, GAS_TANK, COINS, EARLIER_TRANSFER, SCREENING, AML_HELD, APPROVAL, POLICY, SIGNER_NODES, ENDPOINT, FEE_ESTIMATE, CHAIN_REFUSAL, FEE_TOO_LOW, REORGANISED, BELOW_ZERO, FINAL_BLOCK, SWEEP_COST, INTERNAL; further codes may be added */
            code: string;
            /** @description A sentence for people; may change */
            reason: string;
            /** @description Time since when it has been waiting for this reason */
            since: string;
            /** @description With `GAS_TANK`: reason code of the transaction that brings the fee, if that one waits itself */
            cause?: string;
        };
        Wallet: {
            id: string;
            asset: string;
            /** @enum {string} */
            status: "active" | "inactive";
            /** @description The first address of the wallet */
            omnibus_address: string;
            /** @description Derivation path [sub-account, chain, index], not hardened, relative to the key in GET /dac/v1/keys */
            path: number[];
            /** Format: date-time */
            created_at: string;
        };
        WalletBalance: {
            id: string;
            asset: string;
            /** @enum {string} */
            status: "active" | "inactive";
            /** @description The first address of the wallet */
            omnibus_address: string;
            /** @description Derivation path [sub-account, chain, index], not hardened, relative to the key in GET /dac/v1/keys */
            path: number[];
            /** Format: date-time */
            created_at: string;
            /** Format: decimal */
            balance: Decimal;
            /** Format: decimal */
            omnibus_balance: Decimal;
            /**
             * Format: decimal
             * @description The largest amount that one transfer can pay now, at the medium fee level and to an address of any kind. On networks with coins: from the largest coins that are not frozen and fit into one transaction, less its fee; on other networks: `balance`, less the fee if the wallet pays it in this asset. Null if the fee rate is not known now. Never above `balance`
             */
            max_spendable: Decimal | null;
            /** @description Why no new address of the wallet can be created; null: new addresses can be created. The balance can be sent in both cases */
            closed: {
                /** @enum {string} */
                status: "deprecated" | "retired";
                since: string;
                reason: string;
            } | null;
        };
        Webhook: {
            id: string;
            url: string;
            events: string[];
            description: string | null;
            /** @enum {string} */
            format: "standard" | "classic";
            disabled: boolean;
            disabled_reason: string | null;
            /** @description Consecutive failed attempts; the webhook is disabled after 50 */
            failures: number;
            /** @description Until this time, the secret from before the rotation signs as well */
            previous_secret_until: string | null;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        WebhookDeletion: {
            id: string;
            /** @constant */
            deleted: true;
        };
        WebhookKeys: {
            keys: {
                kty: string;
                n: string;
                e: string;
                kid: string;
                /** @constant */
                alg: "RS512";
                /** @constant */
                use: "sig";
            }[];
        };
        WebhookPage: {
            data: components["schemas"]["Webhook"][];
        };
        WebhookWithSecret: {
            id: string;
            url: string;
            events: string[];
            description: string | null;
            /** @enum {string} */
            format: "standard" | "classic";
            disabled: boolean;
            disabled_reason: string | null;
            /** @description Consecutive failed attempts; the webhook is disabled after 50 */
            failures: number;
            /** @description Until this time, the secret from before the rotation signs as well */
            previous_secret_until: string | null;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            /** @description `whsec_` and 32 bytes in base64. Returned only in this response */
            secret: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type Address = components['schemas']['Address'];
export type AddressPage = components['schemas']['AddressPage'];
export type AddressRelease = components['schemas']['AddressRelease'];
export type AddressValidation = components['schemas']['AddressValidation'];
export type AmlSettings = components['schemas']['AmlSettings'];
export type Approval = components['schemas']['Approval'];
export type ApprovalChange = components['schemas']['ApprovalChange'];
export type ApprovalDecision = components['schemas']['ApprovalDecision'];
export type ApprovalDetail = components['schemas']['ApprovalDetail'];
export type ApprovalFacts = components['schemas']['ApprovalFacts'];
export type ApprovalNeed = components['schemas']['ApprovalNeed'];
export type ApprovalOutcome = components['schemas']['ApprovalOutcome'];
export type ApprovalPage = components['schemas']['ApprovalPage'];
export type ApprovalRequester = components['schemas']['ApprovalRequester'];
export type ApprovalStatement = components['schemas']['ApprovalStatement'];
export type Asset = components['schemas']['Asset'];
export type Balance = components['schemas']['Balance'];
export type BalancePage = components['schemas']['BalancePage'];
export type CancelInvoiceRequest = components['schemas']['CancelInvoiceRequest'];
export type CancelOrderRequest = components['schemas']['CancelOrderRequest'];
export type CancelTransactionRequest = components['schemas']['CancelTransactionRequest'];
export type CertifiedKey = components['schemas']['CertifiedKey'];
export type ChangeExchangeAccountRequest = components['schemas']['ChangeExchangeAccountRequest'];
export type ChangeWebhookRequest = components['schemas']['ChangeWebhookRequest'];
export type Checkout = components['schemas']['Checkout'];
export type ChooseCheckoutAssetRequest = components['schemas']['ChooseCheckoutAssetRequest'];
export type Coin = components['schemas']['Coin'];
export type CoinAside = components['schemas']['CoinAside'];
export type CoinPage = components['schemas']['CoinPage'];
export type CoinsAsidePage = components['schemas']['CoinsAsidePage'];
export type ConsolidateCoinsRequest = components['schemas']['ConsolidateCoinsRequest'];
export type Conversion = components['schemas']['Conversion'];
export type CreateAddressRequest = components['schemas']['CreateAddressRequest'];
export type CreateConversionRequest = components['schemas']['CreateConversionRequest'];
export type CreateExchangeAccountRequest = components['schemas']['CreateExchangeAccountRequest'];
export type CreateExchangeWithdrawalRequest = components['schemas']['CreateExchangeWithdrawalRequest'];
export type CreateForwardingRuleRequest = components['schemas']['CreateForwardingRuleRequest'];
export type CreateInvoiceRequest = components['schemas']['CreateInvoiceRequest'];
export type CreateOrderRequest = components['schemas']['CreateOrderRequest'];
export type CreatePolicyChangeRequest = components['schemas']['CreatePolicyChangeRequest'];
export type CreateTransactionRequest = components['schemas']['CreateTransactionRequest'];
export type CreateWalletAliasRequest = components['schemas']['CreateWalletAliasRequest'];
export type CreateWalletRequest = components['schemas']['CreateWalletRequest'];
export type CreateWebhookRequest = components['schemas']['CreateWebhookRequest'];
export type DeleteExchangeAccountRequest = components['schemas']['DeleteExchangeAccountRequest'];
export type DeleteForwardingRuleRequest = components['schemas']['DeleteForwardingRuleRequest'];
export type DeleteWebhookRequest = components['schemas']['DeleteWebhookRequest'];
export type Delivery = components['schemas']['Delivery'];
export type DeliveryPage = components['schemas']['DeliveryPage'];
export type EstimateFeeRequest = components['schemas']['EstimateFeeRequest'];
export type EvaluatePolicyRequest = components['schemas']['EvaluatePolicyRequest'];
export type EventPage = components['schemas']['EventPage'];
export type ExchangeAccount = components['schemas']['ExchangeAccount'];
export type ExchangeAccountDeletion = components['schemas']['ExchangeAccountDeletion'];
export type ExchangeAccountPage = components['schemas']['ExchangeAccountPage'];
export type ExchangeAccountTest = components['schemas']['ExchangeAccountTest'];
export type ExchangeAccountWithBalances = components['schemas']['ExchangeAccountWithBalances'];
export type ExchangeBalance = components['schemas']['ExchangeBalance'];
export type ExchangeDepositAddress = components['schemas']['ExchangeDepositAddress'];
export type ExchangePage = components['schemas']['ExchangePage'];
export type ExchangeTransfer = components['schemas']['ExchangeTransfer'];
export type ExchangeTransferPage = components['schemas']['ExchangeTransferPage'];
export type FeeEstimate = components['schemas']['FeeEstimate'];
export type ForwardPage = components['schemas']['ForwardPage'];
export type ForwardingRule = components['schemas']['ForwardingRule'];
export type ForwardingRulePage = components['schemas']['ForwardingRulePage'];
export type FrozenAddress = components['schemas']['FrozenAddress'];
export type GasTank = components['schemas']['GasTank'];
export type GasTankEntryPage = components['schemas']['GasTankEntryPage'];
export type GiveApprovalRequest = components['schemas']['GiveApprovalRequest'];
export type Index = components['schemas']['Index'];
export type Invoice = components['schemas']['Invoice'];
export type InvoicePage = components['schemas']['InvoicePage'];
export type InvoicePayment = components['schemas']['InvoicePayment'];
export type InvoiceSettings = components['schemas']['InvoiceSettings'];
export type KeyPage = components['schemas']['KeyPage'];
export type Liveness = components['schemas']['Liveness'];
export type MarkInvoiceRequest = components['schemas']['MarkInvoiceRequest'];
export type MarketPage = components['schemas']['MarketPage'];
export type NetworkFeeRates = components['schemas']['NetworkFeeRates'];
export type OpenApi = components['schemas']['OpenApi'];
export type Order = components['schemas']['Order'];
export type OrderBook = components['schemas']['OrderBook'];
export type OrderPage = components['schemas']['OrderPage'];
export type OrderWithFills = components['schemas']['OrderWithFills'];
export type PasskeyAssertion = components['schemas']['PasskeyAssertion'];
export type Policy = components['schemas']['Policy'];
export type PolicyChange = components['schemas']['PolicyChange'];
export type PolicyChangeDetail = components['schemas']['PolicyChangeDetail'];
export type PolicyChangePage = components['schemas']['PolicyChangePage'];
export type PolicyChangeStatement = components['schemas']['PolicyChangeStatement'];
export type PolicyDifference = components['schemas']['PolicyDifference'];
export type PolicyDocument = components['schemas']['PolicyDocument'];
export type PolicyEvaluation = components['schemas']['PolicyEvaluation'];
export type PolicyKey = components['schemas']['PolicyKey'];
export type PolicyKeySuspension = components['schemas']['PolicyKeySuspension'];
export type PolicyProposal = components['schemas']['PolicyProposal'];
export type PolicyReference = components['schemas']['PolicyReference'];
export type PolicyReset = components['schemas']['PolicyReset'];
export type PolicyResumption = components['schemas']['PolicyResumption'];
export type PolicyRule = components['schemas']['PolicyRule'];
export type PolicySimulation = components['schemas']['PolicySimulation'];
export type PolicyStatement = components['schemas']['PolicyStatement'];
export type PolicyStop = components['schemas']['PolicyStop'];
export type PolicyStopOrder = components['schemas']['PolicyStopOrder'];
export type PolicyTried = components['schemas']['PolicyTried'];
export type PolicyVersion = components['schemas']['PolicyVersion'];
export type PolicyVersionPage = components['schemas']['PolicyVersionPage'];
export type PolicyVeto = components['schemas']['PolicyVeto'];
export type PolicyWarning = components['schemas']['PolicyWarning'];
export type PolicyWindow = components['schemas']['PolicyWindow'];
export type PolicyWindowLimit = components['schemas']['PolicyWindowLimit'];
export type PolicyWindowPage = components['schemas']['PolicyWindowPage'];
export type PolicyWindowUse = components['schemas']['PolicyWindowUse'];
export type PrepaidFee = components['schemas']['PrepaidFee'];
export type PrepaidFeeEntryPage = components['schemas']['PrepaidFeeEntryPage'];
export type Price = components['schemas']['Price'];
export type Problem = components['schemas']['Problem'];
export type ProvePolicyKeyRequest = components['schemas']['ProvePolicyKeyRequest'];
export type QuoteConversionRequest = components['schemas']['QuoteConversionRequest'];
export type ReadPrepaidFeeRequest = components['schemas']['ReadPrepaidFeeRequest'];
export type Readiness = components['schemas']['Readiness'];
export type RefundInvoiceRequest = components['schemas']['RefundInvoiceRequest'];
export type ReleaseUnstakedRequest = components['schemas']['ReleaseUnstakedRequest'];
export type Replacement = components['schemas']['Replacement'];
export type ReservePage = components['schemas']['ReservePage'];
export type ReservesProof = components['schemas']['ReservesProof'];
export type ReservesStatement = components['schemas']['ReservesStatement'];
export type ResumePolicyRequest = components['schemas']['ResumePolicyRequest'];
export type RotateWebhookSecretRequest = components['schemas']['RotateWebhookSecretRequest'];
export type SaveAmlSettingsRequest = components['schemas']['SaveAmlSettingsRequest'];
export type SaveInvoiceSettingsRequest = components['schemas']['SaveInvoiceSettingsRequest'];
export type SignedPolicyStop = components['schemas']['SignedPolicyStop'];
export type SimulatePolicyRequest = components['schemas']['SimulatePolicyRequest'];
export type SpeedUpTransactionRequest = components['schemas']['SpeedUpTransactionRequest'];
export type StakeRequest = components['schemas']['StakeRequest'];
export type Staking = components['schemas']['Staking'];
export type StakingAnswer = components['schemas']['StakingAnswer'];
export type Statement = components['schemas']['Statement'];
export type StatementBalance = components['schemas']['StatementBalance'];
export type StatementMovement = components['schemas']['StatementMovement'];
export type StopPolicyRequest = components['schemas']['StopPolicyRequest'];
export type SuspendPolicyKeyRequest = components['schemas']['SuspendPolicyKeyRequest'];
export type TestExchangeAccountRequest = components['schemas']['TestExchangeAccountRequest'];
export type Ticker = components['schemas']['Ticker'];
export type Transaction = components['schemas']['Transaction'];
export type TransactionNow = components['schemas']['TransactionNow'];
export type TransactionPage = components['schemas']['TransactionPage'];
export type TransactionWithReplacements = components['schemas']['TransactionWithReplacements'];
export type UnfreezeAddressRequest = components['schemas']['UnfreezeAddressRequest'];
export type UnstakeRequest = components['schemas']['UnstakeRequest'];
export type UpdateCoinRequest = components['schemas']['UpdateCoinRequest'];
export type ValidateAddressRequest = components['schemas']['ValidateAddressRequest'];
export type VetoPolicyRequest = components['schemas']['VetoPolicyRequest'];
export type Void = components['schemas']['Void'];
export type VoidRecord = components['schemas']['VoidRecord'];
export type Waiting = components['schemas']['Waiting'];
export type Wallet = components['schemas']['Wallet'];
export type WalletBalance = components['schemas']['WalletBalance'];
export type Webhook = components['schemas']['Webhook'];
export type WebhookDeletion = components['schemas']['WebhookDeletion'];
export type WebhookKeys = components['schemas']['WebhookKeys'];
export type WebhookPage = components['schemas']['WebhookPage'];
export type WebhookWithSecret = components['schemas']['WebhookWithSecret'];
export interface operations {
    listAssets: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Asset"][];
                };
            };
        };
    };
    listSupportedAssets: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Asset"][];
                };
            };
        };
    };
    createWallet: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateWalletRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Wallet"];
                };
            };
        };
    };
    createWalletAlias: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateWalletAliasRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Wallet"];
                };
            };
        };
    };
    listWallets: {
        parameters: {
            query: {
                /** @description An `asset_name` from `GET /assets`; case-sensitive */
                asset: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WalletBalance"][];
                };
            };
        };
    };
    listBalances: {
        parameters: {
            query?: {
                /** @description `next` of an earlier response: returns the wallets that follow */
                after?: string;
                /** @description Maximum number of wallets in the response; by default 100 */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BalancePage"];
                };
            };
        };
    };
    listCoins: {
        parameters: {
            query: {
                /** @description An `asset_name` from `GET /assets`; case-sensitive */
                asset: string;
                /** @description Returns only coins in this state */
                state?: "reserved" | "frozen" | "available" | "held" | "waiting";
                /** @description `next` of an earlier response: returns the coins that follow */
                after?: string;
                /** @description Maximum number of coins in the response; by default 100 */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CoinPage"];
                };
            };
        };
    };
    updateCoin: {
        parameters: {
            path: {
                /** @description `id` of the coin */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["UpdateCoinRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Coin"];
                };
            };
        };
    };
    consolidateCoins: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ConsolidateCoinsRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Transaction"];
                };
            };
        };
    };
    listCoinsAside: {
        parameters: {
            query?: {
                /** @description An `asset_name` from `GET /assets`; case-sensitive */
                asset?: string;
                /** @description Code of a network */
                network?: string;
                /** @description `next` of an earlier response: returns the outputs that follow */
                after?: string;
                /** @description Maximum number of outputs in the response; by default 100 */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CoinsAsidePage"];
                };
            };
        };
    };
    readStatement: {
        parameters: {
            query: {
                /** @description An `asset_name` from `GET /assets`; case-sensitive */
                asset: string;
                /** @description wallet: the wallet of the asset in the sub-account. gas_tank: the gas tank of the workspace whose coin the asset is, with its fuel at addresses */
                account?: "wallet" | "gas_tank";
                /** @description Beginning of the period as Unix time in seconds, inclusive; by default all movements are included */
                from?: number;
                /** @description End of the period as Unix time in seconds, exclusive; by default now */
                to?: number;
                /** @description `next` of an earlier response: returns the movements that follow */
                after?: string;
                /** @description Maximum number of movements in the response; by default 100 */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Statement"];
                };
            };
        };
    };
    exportStatement: {
        parameters: {
            query?: {
                /** @description Asset of the wallet or gas tank; by default all */
                asset?: string;
                /** @description wallet: the wallet of the asset in the sub-account. gas_tank: the gas tank of the workspace whose coin the asset is, with its fuel at addresses */
                account?: "wallet" | "gas_tank";
                /** @description Beginning of the period as Unix time in seconds, inclusive; by default all movements are included */
                from?: number;
                /** @description End of the period as Unix time in seconds, exclusive; by default now */
                to?: number;
                /** @description Whether the file begins with a byte order mark, without which Excel reads UTF-8 as Windows-1252; `false` for programs */
                bom?: "true" | "false";
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/csv": string;
                };
            };
        };
    };
    createAddress: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateAddressRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Address"];
                };
            };
        };
    };
    listAddresses: {
        parameters: {
            query: {
                /** @description An `asset_name` from `GET /assets`; case-sensitive */
                asset: string;
                /** @description `next` of an earlier response: returns the addresses that follow */
                after?: string;
                /** @description Addresses per page; by default 100 if only `after` is present */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Address"][] | components["schemas"]["AddressPage"];
                };
            };
        };
    };
    listKeys: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeyPage"];
                };
            };
        };
    };
    validateAddress: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ValidateAddressRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AddressValidation"];
                };
            };
        };
    };
    createTransaction: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateTransactionRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Transaction"];
                };
            };
        };
    };
    readTransaction: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TransactionWithReplacements"];
                };
            };
        };
    };
    listTransactions: {
        parameters: {
            query?: {
                /** @description An `asset_name` from `GET /assets`; case-sensitive */
                asset?: string;
                /** @description Only records created before this Unix time in seconds */
                before?: number;
                /** @description Only records created after this Unix time in seconds */
                after?: number;
                /** @description Only records with this source type */
                source_type?: "INTERNAL" | "EXTERNAL" | "GAS_TANK" | "OMNIBUS" | "STAKING";
                /** @description Source address or label */
                source_id?: string;
                /** @description Only records with this dest type */
                dest_type?: "INTERNAL" | "EXTERNAL" | "GAS_TANK" | "OMNIBUS" | "STAKING";
                /** @description Destination address or label */
                dest_id?: string;
                /** @description Source or destination address, in any letter case. For labels use source_id and dest_id */
                address?: string;
                /** @description Only records with this status */
                status?: "pending" | "confirmed" | "failed";
                /** @description Platform id or hash on the chain */
                id?: string;
                /** @description The idempotency key of the request, exact match */
                sequence_id?: string;
                /** @description The complete memo, exact match */
                memo?: string;
                /** @description Prefix of the memo; the letters a to z match in any case. The request fails with 400 if more than 1000 memos of the sub-account match */
                memo_begins?: string;
                /** @description Only transactions of this type. Fuel, Sweep and other transactions that the platform creates itself are returned only if this selects them */
                type?: "Withdraw" | "Deposit" | "Sweep" | "Fuel" | "GasTankDeposit" | "GasTankDrain" | "Stake" | "Unstake" | "Release" | "Consolidation" | "EnergyLoan" | "EnergyReturn";
                /** @description Page number; by default 1 */
                page?: number;
                /** @description Records per page; by default 50 */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TransactionPage"];
                };
            };
        };
    };
    speedUpTransaction: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["SpeedUpTransactionRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TransactionNow"];
                };
            };
        };
    };
    cancelTransaction: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CancelTransactionRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TransactionNow"];
                };
            };
        };
    };
    listApprovals: {
        parameters: {
            query?: {
                /** @description Only records with this state */
                state?: "open" | "approved" | "rejected" | "expired" | "ended";
                /** @description `next` of an earlier response: returns the records that follow */
                after?: string;
                /** @description Maximum number of records in the response; by default 50 */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApprovalPage"];
                };
            };
        };
    };
    readApproval: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApprovalDetail"];
                };
            };
        };
    };
    giveApproval: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["GiveApprovalRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApprovalOutcome"];
                };
            };
        };
    };
    readPolicy: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Policy"];
                };
            };
        };
    };
    listPolicyVersions: {
        parameters: {
            query?: {
                /** @description `next` of an earlier response: returns the documents that follow */
                after?: number;
                /** @description Maximum number of documents in the response; by default 10 */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolicyVersionPage"];
                };
            };
        };
    };
    listPolicyWindows: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolicyWindowPage"];
                };
            };
        };
    };
    evaluatePolicy: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["EvaluatePolicyRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolicyEvaluation"];
                };
            };
        };
    };
    simulatePolicy: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["SimulatePolicyRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolicySimulation"];
                };
            };
        };
    };
    listPolicyChanges: {
        parameters: {
            query?: {
                /** @description Only changes in this state */
                state?: "open" | "approved" | "held" | "in_force" | "rejected" | "vetoed" | "refused" | "expired" | "ended";
                /** @description `next` of an earlier response: returns the changes that follow */
                after?: string;
                /** @description Maximum number of changes in the response; by default 50 */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolicyChangePage"];
                };
            };
        };
    };
    createPolicyChange: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreatePolicyChangeRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolicyChangeDetail"];
                };
            };
        };
    };
    readPolicyChange: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolicyChangeDetail"];
                };
            };
        };
    };
    provePolicyKey: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ProvePolicyKeyRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolicyChangeDetail"];
                };
            };
        };
    };
    stopPolicy: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["StopPolicyRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolicyStopOrder"];
                };
            };
        };
    };
    resumePolicy: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ResumePolicyRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolicyResumption"];
                };
            };
        };
    };
    vetoPolicy: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["VetoPolicyRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolicyVeto"];
                };
            };
        };
    };
    suspendPolicyKey: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["SuspendPolicyKeyRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolicyKeySuspension"];
                };
            };
        };
    };
    readPolicyStop: {
        parameters: {
            path: {
                /** @description Id of the object */
                hash: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SignedPolicyStop"];
                };
            };
        };
    };
    listGasTanks: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GasTank"][];
                };
            };
        };
    };
    listGasTankEntries: {
        parameters: {
            query?: {
                /** @description Page number; by default 1 */
                page?: number;
                /** @description Records per page; by default 50 */
                limit?: number;
            };
            path: {
                /** @description Id of the object */
                network: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GasTankEntryPage"];
                };
            };
        };
    };
    readNetworkFeeRates: {
        parameters: {
            path: {
                /** @description Id of the object */
                asset: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NetworkFeeRates"];
                };
            };
        };
    };
    estimateFee: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["EstimateFeeRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FeeEstimate"];
                };
            };
        };
    };
    readPrepaidFee: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReadPrepaidFeeRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PrepaidFee"];
                };
            };
        };
    };
    listPrepaidFeeEntries: {
        parameters: {
            query?: {
                /** @description Page number; by default 1 */
                page?: number;
                /** @description Records per page; by default 50 */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PrepaidFeeEntryPage"];
                };
            };
        };
    };
    listPrices: {
        parameters: {
            query?: {
                /** @description Asset names, comma-separated; by default every asset that has a price */
                assets?: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Price"][];
                };
            };
        };
    };
    readAmlSettings: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AmlSettings"];
                };
            };
        };
    };
    saveAmlSettings: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["SaveAmlSettingsRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AmlSettings"];
                };
            };
        };
    };
    unfreezeAddress: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["UnfreezeAddressRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AddressRelease"];
                };
            };
        };
    };
    listFrozenAddresses: {
        parameters: {
            query?: {
                /** @description An `asset_name` from `GET /assets`; case-sensitive */
                asset?: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FrozenAddress"][];
                };
            };
        };
    };
    listForwardingRules: {
        parameters: {
            query?: {
                /** @description An `asset_name` from `GET /assets`; case-sensitive */
                asset?: string;
                /** @description Only records with this status */
                status?: "pending" | "active" | "paused" | "awaiting_approval" | "expired" | "deleting" | "deleted";
                /** @description Page number; by default 1 */
                page?: number;
                /** @description Records per page; by default 50 */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ForwardingRulePage"];
                };
            };
        };
    };
    createForwardingRule: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateForwardingRuleRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ForwardingRule"];
                };
            };
        };
    };
    readForwardingRule: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ForwardingRule"];
                };
            };
        };
    };
    deleteForwardingRule: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["DeleteForwardingRuleRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ForwardingRule"];
                };
            };
        };
    };
    pauseForwardingRule: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ForwardingRule"];
                };
            };
        };
    };
    resumeForwardingRule: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ForwardingRule"];
                };
            };
        };
    };
    listForwards: {
        parameters: {
            query?: {
                /** @description Page number; by default 1 */
                page?: number;
                /** @description Records per page; by default 50 */
                limit?: number;
            };
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ForwardPage"];
                };
            };
        };
    };
    listInvoices: {
        parameters: {
            query?: {
                /** @description Only records with this status */
                status?: "Pending" | "Processing" | "Paid" | "Expired" | "Invalid";
                /** @description Only records with this exception */
                exception?: "late" | "partial" | "over";
                /** @description Only records with this order id */
                order_id?: string;
                /** @description Only invoices that can be paid in this asset */
                asset?: string;
                /** @description Only records created at or after this Unix time in seconds */
                from?: number;
                /** @description Only records created before this Unix time in seconds */
                to?: number;
                /** @description Page number; by default 1 */
                page?: number;
                /** @description Records per page; by default 50 */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InvoicePage"];
                };
            };
        };
    };
    createInvoice: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateInvoiceRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Invoice"];
                };
            };
        };
    };
    readInvoice: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Invoice"];
                };
            };
        };
    };
    cancelInvoice: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CancelInvoiceRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Invoice"];
                };
            };
        };
    };
    markInvoice: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["MarkInvoiceRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Invoice"];
                };
            };
        };
    };
    refundInvoice: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RefundInvoiceRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Transaction"];
                };
            };
        };
    };
    readInvoiceSettings: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InvoiceSettings"];
                };
            };
        };
    };
    saveInvoiceSettings: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["SaveInvoiceSettingsRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InvoiceSettings"];
                };
            };
        };
    };
    readCheckout: {
        parameters: {
            path: {
                /** @description Id of the object */
                inv_id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Checkout"];
                };
            };
        };
    };
    chooseCheckoutAsset: {
        parameters: {
            path: {
                /** @description Id of the object */
                inv_id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ChooseCheckoutAssetRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Checkout"];
                };
            };
        };
    };
    streamCheckout: {
        parameters: {
            path: {
                /** @description Id of the object */
                inv_id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description An event stream; this schema describes the data of each event */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["Checkout"];
                };
            };
        };
    };
    listExchanges: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExchangePage"];
                };
            };
        };
    };
    listExchangeAccounts: {
        parameters: {
            query?: {
                /** @description Only records with this exchange */
                exchange?: string;
                /** @description Page number; by default 1 */
                page?: number;
                /** @description Records per page; by default 50 */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExchangeAccountPage"];
                };
            };
        };
    };
    createExchangeAccount: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateExchangeAccountRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExchangeAccount"];
                };
            };
        };
    };
    readExchangeAccount: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExchangeAccountWithBalances"];
                };
            };
        };
    };
    deleteExchangeAccount: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["DeleteExchangeAccountRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExchangeAccountDeletion"];
                };
            };
        };
    };
    changeExchangeAccount: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ChangeExchangeAccountRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExchangeAccount"];
                };
            };
        };
    };
    testExchangeAccount: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["TestExchangeAccountRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExchangeAccountTest"];
                };
            };
        };
    };
    listMarkets: {
        parameters: {
            query: {
                /** @description Only records with this exchange */
                exchange: string;
                /** @description Only records with this base */
                base?: string;
                /** @description Only records with this quote */
                quote?: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MarketPage"];
                };
            };
        };
    };
    readTicker: {
        parameters: {
            query: {
                /** @description Only records with this exchange */
                exchange: string;
                /** @description Symbol of a market, for example BTC/USD */
                market: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Ticker"];
                };
            };
        };
    };
    readOrderBook: {
        parameters: {
            query: {
                /** @description Only records with this exchange */
                exchange: string;
                /** @description Symbol of a market, for example BTC/USD */
                market: string;
                /** @description Levels on each side, as far as the exchange returns them; by default 20 */
                depth?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OrderBook"];
                };
            };
        };
    };
    listOrders: {
        parameters: {
            query?: {
                /** @description Only records with this exchange account */
                exchange_account?: string;
                /** @description Only records with this exchange */
                exchange?: string;
                /** @description Only records with this market */
                market?: string;
                /** @description Only records with this side */
                side?: "buy" | "sell";
                /** @description Only records with this type */
                type?: "market" | "limit";
                /** @description Only records with this status */
                status?: "open" | "partially_filled" | "filled" | "cancelled" | "rejected" | "unknown";
                /** @description Platform id, client order id, or the exchange’s id */
                id?: string;
                /** @description Only records with this sequence id */
                sequence_id?: string;
                /** @description Only records created before this Unix time in seconds */
                before?: number;
                /** @description Only records created after this Unix time in seconds */
                after?: number;
                /** @description Page number; by default 1 */
                page?: number;
                /** @description Records per page; by default 50 */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OrderPage"];
                };
            };
        };
    };
    createOrder: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateOrderRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Order"];
                };
            };
        };
    };
    readOrder: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OrderWithFills"];
                };
            };
        };
    };
    cancelOrder: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CancelOrderRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Order"];
                };
            };
        };
    };
    quoteConversion: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["QuoteConversionRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Conversion"];
                };
            };
        };
    };
    createConversion: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateConversionRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Conversion"];
                };
            };
        };
    };
    readConversion: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Conversion"];
                };
            };
        };
    };
    readExchangeDepositAddress: {
        parameters: {
            query: {
                /** @description An `asset_name` from `GET /assets`; case-sensitive */
                asset: string;
            };
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExchangeDepositAddress"];
                };
            };
        };
    };
    createExchangeWithdrawal: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateExchangeWithdrawalRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExchangeTransfer"];
                };
            };
        };
    };
    listExchangeTransfers: {
        parameters: {
            query?: {
                /** @description Only records with this exchange account */
                exchange_account?: string;
                /** @description Only records with this asset */
                asset?: string;
                /** @description Only records with this direction */
                direction?: "to_exchange" | "from_exchange";
                /** @description Only records with this status */
                status?: "pending" | "completed" | "failed" | "unknown";
                /** @description Only records with this transaction id */
                transaction_id?: string;
                /** @description Page number; by default 1 */
                page?: number;
                /** @description Records per page; by default 50 */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExchangeTransferPage"];
                };
            };
        };
    };
    readExchangeTransfer: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExchangeTransfer"];
                };
            };
        };
    };
    listEvents: {
        parameters: {
            query?: {
                /** @description The `id` of an event: returns the events that follow it */
                after?: string;
                /** @description Event types, `group.*` or `*`, comma-separated, in any letter case */
                type?: string;
                /** @description Maximum number of events in the response; by default 100 */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EventPage"];
                };
            };
        };
    };
    streamEvents: {
        parameters: {
            query?: {
                /** @description The `id` of an event: returns the events that follow it */
                after?: string;
                /** @description Event types, `group.*` or `*`, comma-separated, in any letter case */
                type?: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description An event stream; this schema describes the data of each event */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": {
                        /** @enum {string} */
                        type: "transaction.created" | "transaction.updated" | "transaction.confirmed" | "transaction.failed" | "transaction.reverted" | "approval.requested" | "approval.updated" | "approval.closed" | "policy.proposed" | "policy.vetoed" | "policy.in_force" | "policy.stopped" | "policy.resumed" | "deposit.detected" | "deposit.confirmed" | "deposit.frozen" | "deposit.released" | "deposit.suspended" | "deposit.reverted" | "address.created" | "address.frozen" | "address.unfrozen" | "wallet.created" | "wallet.updated" | "gas_tank.low" | "gas_tank.empty" | "prepaid_fee.low" | "prepaid_fee.empty" | "prepaid_fee.tier_changed" | "staking.staked" | "staking.unstaked" | "staking.releasable" | "staking.released" | "auto_forwarding.created" | "auto_forwarding.deleted" | "aml.screening_overdue" | "invoice.created" | "invoice.updated" | "invoice.processing" | "invoice.paid" | "invoice.reverted" | "invoice.expired" | "invoice.invalid" | "exchange_account.created" | "exchange_account.updated" | "exchange_account.failing" | "exchange_account.difference" | "exchange_account.deleted" | "order.created" | "order.updated" | "exchange_transfer.created" | "exchange_transfer.updated" | "webhook.test" | "webhook.disabled";
                        /** @description Time of the change, ISO 8601 */
                        timestamp: string;
                        data: {
                            [key: string]: unknown;
                        };
                        /** @description Equal to `webhook-id` in every delivery attempt, and the cursor of the event log */
                        id: string;
                        /** @description Id of the object that changed */
                        object: string;
                        /** @description Number of the event for its object: 1, 2, 3 …, without gaps. A lower number is an older event */
                        version: number;
                    };
                };
            };
        };
    };
    listWebhooks: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookPage"];
                };
            };
        };
    };
    createWebhook: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateWebhookRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
        };
    };
    readWebhook: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    deleteWebhook: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["DeleteWebhookRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookDeletion"];
                };
            };
        };
    };
    changeWebhook: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ChangeWebhookRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    rotateWebhookSecret: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RotateWebhookSecretRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
        };
    };
    testWebhook: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Delivery"];
                };
            };
        };
    };
    listDeliveries: {
        parameters: {
            query?: {
                /** @description Only records with this status */
                status?: "pending" | "delivered" | "failed";
                /** @description Event types, `group.*` or `*`, comma-separated, in any letter case */
                type?: string;
                /** @description Page number; by default 1 */
                page?: number;
                /** @description Records per page; by default 50 */
                limit?: number;
            };
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryPage"];
                };
            };
        };
    };
    resendDelivery: {
        parameters: {
            path: {
                /** @description Id of the object */
                delivery: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Delivery"];
                };
            };
        };
    };
    resendDeliveryOfWebhook: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
                /** @description Id of the object */
                delivery: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Delivery"];
                };
            };
        };
    };
    readWebhookKeyPem: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-pem-file": string;
                };
            };
        };
    };
    readWebhookKeys: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookKeys"];
                };
            };
        };
    };
    stake: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["StakeRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StakingAnswer"];
                };
            };
        };
    };
    unstake: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["UnstakeRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StakingAnswer"];
                };
            };
        };
    };
    releaseUnstaked: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReleaseUnstakedRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StakingAnswer"];
                };
            };
        };
    };
    readStaking: {
        parameters: {
            query: {
                /** @description Address that has the resource */
                address: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Staking"];
                };
            };
        };
    };
    listReserves: {
        parameters: {
            query?: {
                /** @description Page number; by default 1 */
                page?: number;
                /** @description Statements per page; by default 5 */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReservePage"];
                };
            };
        };
    };
    readReservesProof: {
        parameters: {
            path: {
                /** @description Id of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReservesProof"];
                };
            };
        };
    };
    readIndex: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Index"];
                };
            };
        };
    };
    readOpenApi: {
        parameters: {
            query?: {
                /** @description How the document describes decimals; by default `number` */
                amounts?: "number" | "string";
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenApi"];
                };
            };
        };
    };
    readLiveness: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Liveness"];
                };
            };
        };
    };
    readReadiness: {
        parameters: {
            query?: {
                /** @description If present, 503 is also returned if fewer than two signer nodes can sign, or if no worker or no scanner runs */
                deep?: "1" | "" | "true";
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
        };
    };
    readMetrics: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
        };
    };
}
