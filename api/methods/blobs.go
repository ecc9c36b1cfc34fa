package methods

import "clove.run/clove/api"

// The methods of users about blobs.
var (
	BlobUpload = api.Row[api.BlobUploadParams, api.BlobOpenResult]{Name: "blob.upload", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeTooLarge},
		Doc: "Begins an upload of a blob of the caller's, or for root of a user's: a body of up to 64 MiB, which mail.post and state.write name by its SHA-256. The upload expires after an hour."}

	BlobPart = api.Row[api.BlobWriteParams, api.BlobWriteResult]{Name: "blob.part", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeConflict, api.CodeTooLarge},
		Doc: "Writes a part of an upload, of at most 36 KiB. The parts come in their order; one may be written again."}

	BlobFinish = api.Row[api.BlobCloseParams, api.BlobResult]{Name: "blob.finish", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeConflict},
		Doc: "Ends an upload, and returns the SHA-256 of the blob, which is durable then. If no message and no key names it, it is removed after an hour."}

	BlobList = api.Row[api.BlobListParams, api.BlobListResult]{Name: "blob.list", Access: api.AccessMember, Tier: api.Experimental,
		Doc: "Returns the blobs of the caller, for root of all: their sizes, and how many messages, keys and uploads refer to each. If there are more, the answer has next, and the same request with that as after returns the following part."}

	BlobFetch = api.Row[api.BlobFetchParams, api.BlobReadResult]{Name: "blob.fetch", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound},
		Doc: "Returns a part of a blob of the caller's, or for root of a user's."}
)
